"""`make test`: terraform test and pytest side by side, since the end-to-end tests mostly wait."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from local.terraform import CHECKOUT

LOG = CHECKOUT / "build" / "terraform-test.log"
# Of three workers, the one with the end-to-end tests needs little of a processor.
PYTEST = ("-n", "3", "--dist", "loadgroup", "--no-loadscope-reorder")
COVERAGE = ("--cov", "--cov-report=term-missing:skip-covered")


def main(arguments: Sequence[str]) -> int:
    """Run everything; with arguments, only what pytest makes of them, without coverage. 0 when all passed."""
    if arguments:
        return subprocess.run([sys.executable, "-m", "pytest", *PYTEST, *arguments], check=False).returncode
    LOG.parent.mkdir(exist_ok=True)
    with LOG.open("w") as log:
        terraform = subprocess.Popen(
            [sys.executable, "-m", "local.terraform", "test", "-no-color"], stdout=log, stderr=log
        )
        try:
            status = subprocess.run([sys.executable, "-m", "pytest", *PYTEST, *COVERAGE], check=False).returncode
            failed = terraform.wait()
        finally:
            terraform.terminate()
    text = LOG.read_text()
    # A success is its last line; a failure is worth reading whole.
    print(f"\nterraform test: {text.strip() if failed else text.strip().splitlines()[-1]}")
    return status or failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
