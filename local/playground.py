"""`make emulator`: an AWS emulator to apply root modules of one's own to, until it is interrupted."""

from __future__ import annotations

import shlex
import sys

from local.emulator import REGION, Emulator
from local.processes import ServerError, interrupt_on_signals
from local.terraform import CHECKOUT, TerraformError, cli_environment

LOG = CHECKOUT / "build" / "emulator.log"


def main() -> int:
    interrupt_on_signals()
    try:
        with Emulator(LOG) as emulator:
            print(_invitation(emulator.endpoint), flush=True)
            emulator.wait()
        print(f"\nThe emulator has ended by itself: {LOG.relative_to(CHECKOUT)} may say why.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped, and gone with all that it held.", file=sys.stderr)
        return 0
    except BrokenPipeError:  # nobody reads how to reach it
        return 1
    except (TerraformError, ServerError) as error:
        print(error, file=sys.stderr)
        return 1


def exports(endpoint: str) -> str:
    """The lines for a shell in which Terraform, the AWS command line and ours go to the emulator."""
    provider = shlex.quote(cli_environment()["TF_CLI_CONFIG_FILE"])
    return f"""\
export AWS_ENDPOINT_URL={endpoint} AWS_DEFAULT_REGION={REGION}
export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test
export TF_CLI_CONFIG_FILE={provider}
aws() {{ command aws --endpoint-url {endpoint} "$@"; }}  # version 1 would send SQS's calls to AWS
"""


def _invitation(endpoint: str) -> str:
    return f"""\
An AWS emulator is up at {endpoint}, with IAM enforced. In another terminal:

{exports(endpoint)}
Then apply examples/orders, or a root module of your own. A later plan shows changes to alarms: the emulator does not
read them back whole. It makes no metrics from log lines, so `status` shows none. Its log: {LOG.relative_to(CHECKOUT)}
Ctrl-C stops it; nothing is kept."""


if __name__ == "__main__":
    sys.exit(main())
