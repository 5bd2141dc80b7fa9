"""How long a fresh process takes to import a module: `python probe.py <module>` prints wall and CPU milliseconds.

No package and next to no imports, so that nothing is loaded before the clock runs.
"""

import sys
import time

wall, cpu = time.perf_counter(), time.process_time()
__import__(sys.argv[1])
print((time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000)
