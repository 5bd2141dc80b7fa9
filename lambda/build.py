"""Builds the Lambda zip: the library and its pinned requirements with their bytecode, the same on each machine.

    python lambda/build.py             writes lambda/dist/idempotent-consumer.zip
    python lambda/build.py --check     ends 1 if that zip is not what the sources say
    python lambda/build.py --source FOLDER --output my.zip
                                       the same with your own code and its requirements

The zip is committed, so that whoever applies the module needs no Python. Two builds of one state hold the
same files in the same order, with the same bytes, modes and times. Only the compressed bytes may differ, as
they depend on the machine's zlib: the check compares what the zip holds, and a build that would change no
member leaves the file as it is, so that no function is deployed again for nothing.

To build takes Python 3.13, which compiles the bytecode, beside the Python that runs this. The check compares
the bytecode where the very release that compiled it is at hand, and says so where it is not.

Exit codes: 0 built or up to date, 1 stale, 2 cannot build, 130 interrupted.
"""

from __future__ import annotations

import sys

from idempotent_consumer_build.cli import main

if __name__ == "__main__":
    sys.exit(main())
