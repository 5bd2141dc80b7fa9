"""python -m idempotent_consumer_build"""

import sys

from idempotent_consumer_build.cli import main

if __name__ == "__main__":
    sys.exit(main())
