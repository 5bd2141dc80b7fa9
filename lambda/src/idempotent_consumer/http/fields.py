"""Reads the fields of a JSON object from the settings; each that is wrong is named with its value and the rule."""

import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from idempotent_consumer.expression import Expression
from idempotent_consumer.settings import SettingsError

_MAX_HEADERS = 50
_MAX_QUOTED = 200
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
# They frame the request, and an expression's value is no frame; proxy-* besides.
_FRAMING = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


class Fields:
    """The fields of one object; one that is null counts as absent.

    Each method raises SettingsError where the field is missing or wrong.
    """

    def __init__(self, place: str, value: Any) -> None:
        if not isinstance(value, dict):
            raise SettingsError(f"{place} is {_quote(value)}, not a JSON object")
        self._place = place
        self._values: dict[str, Any] = value
        self._read: set[str] = set()

    def end(self) -> None:
        """Refuse what no method asked for: a misspelt field would be without effect."""
        unknown = sorted(self._values.keys() - self._read)
        if unknown:
            raise self.wrong(unknown[0], self._values[unknown[0]], "not a field of it")

    def wrong(self, name: str, value: Any, rule: str) -> SettingsError:
        return SettingsError(f"{self._place}.{name} is {_quote(value)}, {rule}")

    def object(self, name: str) -> "Fields | None":
        value = self._value(name)
        return None if value is None else Fields(f"{self._place}.{name}", value)

    def optional_text(self, name: str) -> str | None:
        return None if self._value(name) is None else self.text(name)

    def text(self, name: str, default: str | None = None, *, may_be_blank: bool = False) -> str:
        value = self._value(name, default)
        if value is None:
            raise SettingsError(f"{self._place}.{name} is missing")
        if not isinstance(value, str) or not (value.strip() or may_be_blank):
            raise self.wrong(name, value, "not a text, or blank")
        return value

    def choice(self, name: str, choices: Collection[str], default: str) -> str:
        value = self.text(name, default)
        if value not in choices:
            raise self.wrong(name, value, f"not one of {', '.join(choices)}")
        return value

    def boolean(self, name: str, default: bool) -> bool:
        value = self._value(name, default)
        if not isinstance(value, bool):
            raise self.wrong(name, value, "neither true nor false")
        return value

    def whole(self, name: str, least: int, most: int, default: int) -> int:
        value = self._value(name, default)
        if not _is_whole(value, least, most):
            raise self.wrong(name, value, f"not a whole number from {least} to {most}")
        return int(value)

    def strings(self, name: str) -> Sequence[str]:
        value = self._value(name, [])
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise self.wrong(name, value, "not a list of texts")
        return value

    def statuses(self, name: str, least: int, most: int, default: Sequence[int] = ()) -> Sequence[int]:
        value = self._value(name, list(default))
        if not isinstance(value, list) or not all(_is_whole(status, least, most) for status in value):
            raise self.wrong(name, value, f"not a list of statuses from {least} to {most}")
        return value

    def expression(self, name: str, default: str | None = None) -> Expression:
        return self._compiled(name, self.text(name, default))

    def optional_expression(self, name: str) -> Expression | None:
        return None if self._value(name) is None else self.expression(name)

    def optional_header_name(self, name: str) -> str | None:
        return None if self._value(name) is None else self.header_name(name)

    def header_name(self, name: str, default: str | None = None) -> str:
        return self._checked_header(name, self.text(name, default))

    def headers(self, name: str, reserved: Collection[str]) -> Mapping[str, Expression]:
        """Header names and expressions. reserved: names that the effect writes itself."""
        value = self._value(name, {})
        if not isinstance(value, dict) or not all(isinstance(path, str) for path in value.values()):
            raise self.wrong(name, value, "not an object of header names and JMESPath expressions")
        if len(value) > _MAX_HEADERS:
            raise self.wrong(name, len(value), f"over {_MAX_HEADERS} headers")
        taken = {text.lower() for text in reserved}
        for header in value:
            self._checked_header(name, header)
            if header.lower() in taken:
                raise self.wrong(name, header, "a header that is named twice, or that the effect sends itself")
            taken.add(header.lower())
        return MappingProxyType({header: self._compiled(f"{name}.{header}", path) for header, path in value.items()})

    def _checked_header(self, name: str, header: str) -> str:
        if not _TOKEN.fullmatch(header):
            raise self.wrong(name, header, "not a header name")
        if header.lower() in _FRAMING or header.lower().startswith("proxy-"):
            raise self.wrong(name, header, "a header that belongs to the connection")
        return header

    def _compiled(self, name: str, text: str) -> Expression:
        try:
            return Expression(text)
        except ValueError as error:
            raise self.wrong(name, text, str(error)) from None

    def _value(self, name: str, default: Any = None) -> Any:
        self._read.add(name)
        value = self._values.get(name)
        return default if value is None else value


def _is_whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _quote(value: Any) -> str:
    return repr(value)[:_MAX_QUOTED]
