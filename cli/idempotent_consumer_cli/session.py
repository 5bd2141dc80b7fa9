"""Calls to AWS as the operator: Region, profile and endpoint as in other AWS tools."""

from __future__ import annotations

import getpass
from functools import cached_property
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from idempotent_consumer.calls import CALL_ERRORS
from idempotent_consumer_cli.errors import CommandError

# Threads of `verify`, and some to spare.
_CONNECTIONS = 32


class Session:
    """Clients for one account and Region. Each is made once and may be used by several threads.

    profile, region, endpoint_url: None where the environment or AWS's own configuration decides.
    """

    def __init__(self, profile: str | None = None, region: str | None = None, endpoint_url: str | None = None) -> None:
        self._session = boto3.Session(profile_name=profile, region_name=region)
        self._endpoint_url = endpoint_url

    def client(self, service: str, region: str | None = None) -> Any:
        """region: where it is not the consumer's, as for a topic of another Region."""
        config = Config(
            connect_timeout=5,
            read_timeout=60,
            max_pool_connections=_CONNECTIONS,
            retries={"mode": "standard", "total_max_attempts": 5},
            user_agent_appid="idempotent-consumer",
        )
        try:
            return self._session.client(service, region_name=region, endpoint_url=self._endpoint_url, config=config)
        except BotoCoreError:
            raise
        except ValueError as error:
            raise CommandError(
                f"{error}: check --region, and write --endpoint-url or AWS_ENDPOINT_URL as http://localhost:4566"
            ) from None

    @cached_property
    def cloudwatch(self) -> Any:
        return self.client("cloudwatch")

    @cached_property
    def dynamodb(self) -> Any:
        return self.client("dynamodb")

    @cached_property
    def functions(self) -> Any:
        return self.client("lambda")

    @cached_property
    def logs(self) -> Any:
        return self.client("logs")

    @cached_property
    def sts(self) -> Any:
        return self.client("sts")

    @cached_property
    def step_functions(self) -> Any:
        return self.client("stepfunctions")

    @cached_property
    def sqs(self) -> Any:
        return self.client("sqs")


def caller(session: Session) -> str:
    """As AWS knows who it is, else as this machine does. Raises CommandError where neither tells."""
    try:
        return str(session.sts.get_caller_identity()["Arn"])
    except (*CALL_ERRORS, KeyError):
        try:
            return getpass.getuser()
        except (ImportError, KeyError, OSError):
            raise CommandError("who decides? Neither AWS nor this machine tells: give --by") from None
