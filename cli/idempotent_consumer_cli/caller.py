"""Who runs a command."""

from __future__ import annotations

import getpass

from idempotent_consumer.aws import CALL_ERRORS
from idempotent_consumer_cli.errors import CommandError
from idempotent_consumer_cli.session import Session


def caller(session: Session) -> str:
    """As AWS knows who it is, else as this machine does. Raises CommandError where neither tells."""
    try:
        return str(session.sts.get_caller_identity()["Arn"])
    except (*CALL_ERRORS, KeyError):
        try:
            return getpass.getuser()
        except (ImportError, KeyError, OSError):
            raise CommandError("who decides? Neither AWS nor this machine tells: give --by") from None
