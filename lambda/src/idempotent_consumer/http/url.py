"""Which URLs may be called.

A URL is taken apart here once, and what is requested is put together from the parts that were checked: no second
parser can read another host out of it.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

from idempotent_consumer.effect import Final

_DEFAULT_PORTS = {"https": 443, "http": 80}
_MAX_NAME = 253
_LABEL = "[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST = re.compile(rf"(?P<name>{_LABEL}(?:\.{_LABEL})*)\.?(?::(?P<port>[1-9][0-9]{{0,4}}))?", re.IGNORECASE | re.ASCII)
_URL = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?P<fragment>#.*)?",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)
# What RFC 3986 has in a path and in a query.
_PATH = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*")
_QUERY = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*")
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_CONTROL = re.compile("[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Host:
    """name: in lower case, without the dot at its end. port: None for the scheme's own."""

    name: str
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> "Host":
        """Raises ValueError for all but `name` and `name:port`; an international name is written in punycode."""
        match = _HOST.fullmatch(text)
        if not match or len(match["name"]) > _MAX_NAME:
            raise ValueError("not a host name, nor host:port")
        port = int(match["port"]) if match["port"] else None
        if port is not None and port > 65_535:
            raise ValueError("not a port from 1 to 65535")
        return cls(match["name"].lower(), port)


@dataclass(frozen=True)
class Url:
    """A URL that may be called. target: path and query; it may hold what must not be shown."""

    scheme: str
    host: str
    port: int
    target: str = field(repr=False)


def read_url(value: Any, hosts: Collection[Host], allow_http: bool) -> Url:
    """The URL that `value` names: a string, or a list of a URL and path segments, which are percent-encoded.

    An object at the end of the list is a query, likewise encoded.

    Raises Final: `url-missing` where it names none, `url-not-allowed` where it may not be called.
    """
    first, *segments = value if isinstance(value, list) and value else [value]
    if first is None or first == "":
        raise Final("url-missing", "the expression for the URL selects nothing")
    if not isinstance(first, str):
        raise _not_allowed("it is neither a string nor a list that begins with one")
    parameters = segments.pop() if segments and isinstance(segments[-1], dict) else {}
    match = _URL.fullmatch(first)
    if not match:
        raise _not_allowed("it is no absolute URL")
    if match["fragment"] is not None:
        raise _not_allowed("it has a fragment")
    if (segments or parameters) and match["query"] is not None:
        raise _not_allowed("it has a query before the path segments of the list")
    scheme = match["scheme"].lower()
    if scheme != "https" and not (scheme == "http" and allow_http):
        raise _not_allowed(f"its scheme is {scheme[:20]}, not https")
    host = _read_host(match["authority"], scheme, hosts)
    path = _checked(_PATH, match["path"], "path") or "/"
    if segments:
        path = path.removesuffix("/") + "".join(f"/{_segment(segment)}" for segment in segments)
    _check_segments(path)
    query = "" if match["query"] is None else "?" + _checked(_QUERY, match["query"], "query")
    if parameters:
        query = "?" + "&".join(f"{_encoded(name)}={_encoded(each)}" for name, each in parameters.items())
    return Url(scheme, host.name, host.port or _DEFAULT_PORTS[scheme], path + query)


def _read_host(authority: str, scheme: str, hosts: Collection[Host]) -> Host:
    if "@" in authority:
        raise _not_allowed("it names a user")
    try:
        host = Host.parse(authority)
    except ValueError as error:
        raise _not_allowed(f"its host is {error}") from None
    default = _DEFAULT_PORTS[scheme]
    if (host.name, host.port or default) not in {(allowed.name, allowed.port or default) for allowed in hosts}:
        raise _not_allowed(f"its host {authority[:300]} is not one of http.hosts")
    return host


def _checked(allowed: re.Pattern[str], text: str, part: str) -> str:
    if not allowed.fullmatch(text):
        raise _not_allowed(f"its {part} holds a character that has to be percent-encoded")
    # The library would write them so: a checked URL is not changed any more.
    return _ESCAPE.sub(lambda escape: escape[0].upper(), text)


def _segment(value: Any) -> str:
    if value == "":
        raise _not_allowed("it has an empty path segment")
    return _encoded(value)


def _encoded(value: Any) -> str:
    """A path segment, or a part of a query."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if value is None:
        raise Final("url-missing", "the expression for a part of the URL selects nothing")
    if not isinstance(value, str):
        raise _not_allowed("a part of it is neither a string nor an integer")
    try:
        return quote(value, safe="")
    except UnicodeEncodeError:
        raise _not_allowed("a part of it holds half of a surrogate pair") from None


def _check_segments(path: str) -> None:
    """A server may drop or resolve such segments, and then it is another path that is called."""
    _, *segments = path.split("/")
    if "" in segments[:-1]:
        raise _not_allowed("it has an empty path segment")
    for segment in segments:
        text = unquote(segment)
        if _CONTROL.search(text):
            raise _not_allowed("a path segment holds a control character")
        # A few servers decode the slash before they resolve the dots, and a few see no more than what is before a ";".
        if any(part.partition(";")[0] in (".", "..") for part in re.split(r"[/\\]", text)):
            raise _not_allowed("it has a path segment of dots")


def _not_allowed(detail: str) -> Final:
    return Final("url-not-allowed", f"the URL may not be called: {detail}")
