"""AWS clients whose calls end before the function does."""

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any
from urllib.parse import urlencode

import botocore
import botocore.session
from botocore.config import Config
from botocore.loaders import Loader

CONNECT_SECONDS = 1
READ_SECONDS = 2
SDK_ATTEMPTS = 2
# Both attempts time out, with the SDK's pause of up to a second between them. An endpoint with several addresses that
# all swallow packets, or an answer that trickles in, takes longer: then the function times out and the batch returns.
LONGEST_CALL_MS = SDK_ATTEMPTS * (CONNECT_SECONDS + READ_SECONDS) * 1000 + 1000
# What can be missed gives up soon: it may start where there is no time left for another call.
_SHORT_CONNECT_SECONDS, _SHORT_READ_SECONDS = 0.5, 1
SHORT_CALL_MS = int((_SHORT_CONNECT_SECONDS + _SHORT_READ_SECONDS) * 1000)


@dataclass(frozen=True)
class Clients:
    """sqs_short: gives up soon, for what can be missed."""

    dynamodb: Any
    sns: Any
    sqs: Any
    sqs_short: Any

    @classmethod
    def create(cls, topic_arn: str | None = None) -> "Clients":
        """One client a service, from one session: made once for the life of the function's process.

        topic_arn: a topic takes messages in its own Region only, which may be another than the function's. None where
        nothing is published.
        """
        config = _config()
        session = _session()
        session.register("before-call.sns.PublishBatch", _encode_form)

        def client(service: str, region: str | None = None, config: Config = config) -> Any:
            return session.create_client(service, region_name=region, config=config)

        def short_client(service: str) -> Any:
            timeouts = {"connect_timeout": _SHORT_CONNECT_SECONDS, "read_timeout": _SHORT_READ_SECONDS}
            return client(service, config=config.merge(Config(**timeouts, retries={"total_max_attempts": 1})))

        return cls(
            dynamodb=client("dynamodb"),
            sns=client("sns", topic_arn.split(":")[3]) if topic_arn else _MadeOnFirstUse(lambda: client("sns")),
            sqs=_MadeOnFirstUse(lambda: client("sqs")),
            sqs_short=_MadeOnFirstUse(lambda: short_client("sqs")),
        )


def create_client(service: str, region: str | None = None) -> Any:
    """A client of a service beside those of `Clients`, with the same limits. region: None for the function's own."""
    return _session().create_client(service, region_name=region, config=_config())


def _config() -> Config:
    return Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"mode": "standard", "total_max_attempts": SDK_ATTEMPTS},
        # Costs up to two fifths of a call. The tests check each request against botocore's model instead.
        parameter_validation=False,
        # botocore's own is put together anew for each call, a twelfth of it.
        user_agent=f"idempotent-consumer botocore/{botocore.__version__}",
    )


def _session() -> botocore.session.Session:
    session = botocore.session.get_session()
    session.register_component("data_loader", _OwnServicesLoader())
    return session


def _encode_form(params: dict[str, Any], **_: Any) -> None:
    """SNS takes a form. botocore would encode it twice, to sign it and to send it."""
    if isinstance(params.get("body"), dict):
        params["body"] = urlencode(params["body"], doseq=True).encode()


class _MadeOnFirstUse:
    """A client that most processes never need, such as the one for dead letters; it would slow each cold start."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._client: Any = None
        self._lock = Lock()

    def __getattr__(self, name: str) -> Any:
        with self._lock:
            if self._client is None:
                self._client = self._make()
        return getattr(self._client, name)


class _OwnServicesLoader(Loader):  # type: ignore[misc]
    """Loads the services' models without what botocore would do with them in vain."""

    def list_available_services(self, type_name: str) -> list[str]:
        """To load a model, botocore would look through the folders of all 400 services for those it knows."""
        own = ["dynamodb", "secretsmanager", "sns", "sqs", "ssm", "stepfunctions"]
        return [*own, "sts", "sso", "sso-oidc", "signin"]  # the last ones for credentials

    def load_service_model(self, service_name: str, type_name: str, api_version: str | None = None) -> dict[str, Any]:
        """For each call botocore gathers the tables in it, to find an account in their ARNs: they go by name here."""
        model: dict[str, Any] = super().load_service_model(service_name, type_name, api_version)
        for operation in model.get("operations", {}).values():
            operation.pop("operationContextParams", None)
        return model
