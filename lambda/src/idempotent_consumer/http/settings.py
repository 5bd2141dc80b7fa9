"""What the shipped HTTP effect is told by OPERATION_HTTP, checked when the function starts."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

from idempotent_consumer.expression import Expression
from idempotent_consumer.http.fields import Fields
from idempotent_consumer.http.url import Host
from idempotent_consumer.json_text import loads
from idempotent_consumer.rejection import Rejected
from idempotent_consumer.settings import SettingsError

VARIABLE = "OPERATION_HTTP"
_METHODS = ("POST", "PUT", "PATCH", "DELETE")
_MAX_HOSTS = 50
_SECRET_ARN = re.compile(r"arn:[a-z-]+:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:\S+")
_PARAMETER_ARN = re.compile(r"arn:[a-z-]+:ssm:[a-z0-9-]+:[0-9]{12}:parameter/\S+")
_PREFIX = re.compile("[ -~]{0,100}")
_SECONDS_PER_DAY = 86_400
# They tell that nothing is known of the effect asked for, not that it was not applied.
_SAY_NOTHING = frozenset({401, 403, 408, 425, 429})


class StatusMeaning(Enum):
    """What an answer's status says of the effect.

    COMPLETED: applied. FINAL, RETRYABLE: certainly not applied. UNCERTAIN: nobody knows.
    """

    COMPLETED = "completed"
    FINAL = "final"
    RETRYABLE = "retryable"
    UNCERTAIN = "uncertain"


@dataclass(frozen=True)
class SecretSettings:
    """Where a secret lies and how it is sent.

    arn: of a Secrets Manager secret, or of an SSM parameter. json_key: the key of the JSON object that the secret is;
    None where the secret is the whole text. header, prefix: it is sent there, behind that. max_age_seconds: for so long
    a fetched one is used.
    """

    arn: str
    json_key: str | None
    header: str
    prefix: str
    max_age_seconds: int


@dataclass(frozen=True)
class ReconcileSettings:
    """How the provider is asked. applied: true or false in its answer; not_applied_statuses: say "not applied" too."""

    url: Expression
    headers: Mapping[str, Expression]
    applied: Expression
    result: Expression
    not_applied_statuses: frozenset[int]


@dataclass(frozen=True)
class HttpSettings:
    """See `http` of `modules/operation` for each value. statuses: what differs from the defaults of `http.answer`.

    body, idempotency_header: None where none is sent. The module writes its own defaults of these two out.
    """

    url: Expression
    hosts: frozenset[Host]
    method: str
    body: Expression | None
    headers: Mapping[str, Expression]
    result: Expression
    idempotency_header: str | None
    secret: SecretSettings | None
    statuses: Mapping[int, StatusMeaning]
    reconcile: ReconcileSettings | None
    allow_http: bool

    @classmethod
    def from_json(cls, text: str) -> "HttpSettings":
        """Raises SettingsError, naming the first field that is missing or wrong, and the rule."""
        fields = Fields(VARIABLE, _parse(text))
        secret = _secret(fields.object("secret"))
        idempotency_header = fields.optional_header_name("idempotency_header")
        _check_apart(idempotency_header, secret)
        reserved = tuple(name for name in (idempotency_header, secret and secret.header) if name)
        settings = cls(
            url=fields.expression("url"),
            hosts=_hosts(fields),
            method=fields.choice("method", _METHODS, "POST"),
            body=fields.optional_expression("body"),
            headers=fields.headers("headers", reserved),
            result=fields.expression("result", "{status: status}"),
            idempotency_header=idempotency_header,
            secret=secret,
            statuses=_statuses(fields.object("statuses")),
            reconcile=_reconcile(fields.object("reconcile"), reserved),
            allow_http=fields.boolean("allow_http", False),
        )
        fields.end()
        return settings


def _parse(text: str) -> Any:
    try:
        return loads(text)
    except (Rejected, RecursionError) as error:
        raise SettingsError(f"{VARIABLE} is not JSON: {getattr(error, 'detail', 'nested too deep')}") from None


def _hosts(fields: Fields) -> frozenset[Host]:
    texts = fields.strings("hosts")
    if not 1 <= len(texts) <= _MAX_HOSTS:
        raise fields.wrong("hosts", texts, f"not a list of 1 to {_MAX_HOSTS} host names")
    try:
        return frozenset(map(Host.parse, texts))
    except ValueError as error:
        raise fields.wrong("hosts", texts, f"one of them is {error}") from None


def _secret(fields: Fields | None) -> SecretSettings | None:
    if fields is None:
        return None
    secret_arn, parameter_arn = fields.optional_text("secret_arn"), fields.optional_text("parameter_arn")
    if (secret_arn is None) == (parameter_arn is None):
        raise fields.wrong("secret_arn", secret_arn, "and parameter_arn: exactly one of the two is needed")
    for name, arn, pattern in (
        ("secret_arn", secret_arn, _SECRET_ARN),
        ("parameter_arn", parameter_arn, _PARAMETER_ARN),
    ):
        if arn is not None and not pattern.fullmatch(arn):
            raise fields.wrong(name, arn, f"not the ARN of a {name.removesuffix('_arn')}")
    prefix = fields.text("prefix", "Bearer ", may_be_blank=True)
    if not _PREFIX.fullmatch(prefix):
        raise fields.wrong("prefix", prefix, "not up to 100 printable ASCII characters")
    settings = SecretSettings(
        arn=secret_arn or parameter_arn or "",
        json_key=fields.optional_text("json_key"),
        header=fields.header_name("header", "Authorization"),
        prefix=prefix,
        max_age_seconds=fields.whole("max_age_seconds", 1, _SECONDS_PER_DAY, 300),
    )
    fields.end()
    return settings


def _check_apart(idempotency_header: str | None, secret: SecretSettings | None) -> None:
    if secret and idempotency_header and secret.header.lower() == idempotency_header.lower():
        raise SettingsError(f"{VARIABLE}.secret.header is {secret.header!r}, the idempotency key's header")


def _statuses(fields: Fields | None) -> Mapping[int, StatusMeaning]:
    meanings: dict[int, StatusMeaning] = {}
    for meaning in StatusMeaning:
        name = meaning.value
        for status in fields.statuses(name, 100, 599) if fields else ():
            assert fields
            if status in meanings:
                raise fields.wrong(name, status, "named twice in statuses")
            if status < 200 and meaning is not StatusMeaning.UNCERTAIN:
                raise fields.wrong(name, status, "not a last answer, so it can only be uncertain")
            meanings[status] = meaning
    if fields:
        fields.end()
    return MappingProxyType(meanings)


def _reconcile(fields: Fields | None, reserved: tuple[str, ...]) -> ReconcileSettings | None:
    if fields is None:
        return None
    not_applied = frozenset(fields.statuses("not_applied_statuses", 400, 499, (404,)))
    if not_applied & _SAY_NOTHING:
        raise fields.wrong("not_applied_statuses", sorted(not_applied), "with one that says nothing of the effect")
    settings = ReconcileSettings(
        url=fields.expression("url"),
        headers=fields.headers("headers", reserved),
        applied=fields.expression("applied"),
        result=fields.expression("result", "{status: status}"),
        not_applied_statuses=not_applied,
    )
    fields.end()
    return settings
