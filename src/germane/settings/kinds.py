"""Kinds of values: secrets, addresses, lists."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, SecretStr
from pydantic_settings import NoDecode

from germane.errors import SettingsError
from germane.exchange import Status

_PLACES = ("env:", "file:")


def _read_secret(value: Any) -> Any:
    """Follow ``env:NAME`` and ``file:/path``, so that the secret itself need not stand in a file of settings.

    White space around it is taken off: files and secret stores like to end with a new line.
    """
    return _followed(value).strip() if isinstance(value, str) else value


def _followed(value: str) -> str:
    if value.startswith("env:"):
        name = value.removeprefix("env:")
        if name not in os.environ:
            raise ValueError(f"the environment variable {name} is not set")
        return os.environ[name]
    if value.startswith("file:"):
        path = Path(value.removeprefix("file:"))
        try:  # to ask whether it is there fails as well, of a folder that is closed or a name that is too long
            if not path.is_file():
                raise ValueError(f"the file {path} does not exist")
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"the file {path} cannot be read ({type(error).__name__})") from None
    return value


def read_secret(reference: str) -> str:
    """Return what stands at ``env:NAME`` or ``file:/path`` now: it may change while a process runs.

    Raises:
        SettingsError: nothing stands there, or it cannot be read.
    """
    try:
        found = _followed(reference).strip()
    except ValueError as error:
        raise SettingsError(str(error)) from None
    if not found:
        raise SettingsError(f"nothing stands at {reference}")
    return found


def read_address(reference: str) -> str:
    """Return the web address that stands at ``env:NAME`` or ``file:/path`` now.

    Raises:
        SettingsError: none stands there.
    """
    found = read_secret(reference)
    try:
        _is_http(SecretStr(found))
    except ValueError as error:
        raise SettingsError(f"what stands at {reference} {error}") from None
    return found


def _is_reference(value: str) -> str:
    place = next((one for one in _PLACES if value.startswith(one)), None)
    if place is None or not value.removeprefix(place) or not value.isprintable():
        raise ValueError("is a secret: name its place, as env:NAME or file:/path, and not the secret itself")
    return value


def _is_plain(value: str) -> str:
    _is_http(SecretStr(value))
    parts = urlsplit(value)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError("must be an address without a user, a password or parameters: those are secrets")
    return value


def _are_plain(values: tuple[str, ...]) -> tuple[str, ...]:
    if not values:
        raise ValueError("must name at least one address")
    return tuple(map(_is_plain, values))


def _is_key(value: SecretStr) -> SecretStr:
    key = value.get_secret_value()
    if not (key and key.isascii() and key.isprintable()):
        raise ValueError("must be one line of ASCII characters: it goes into the header of each request")
    return value


SHORTEST_TOKEN = 16
"""Characters: nobody tries as many as there are of that length."""


def _is_token(value: SecretStr) -> SecretStr:
    token = value.get_secret_value()
    if len(token) < SHORTEST_TOKEN or not re.fullmatch(r"[!-~]+", token):
        raise ValueError(f"must have at least {SHORTEST_TOKEN} ASCII characters, none of them a space")
    return value


def as_token(given: str | SecretStr) -> SecretStr:
    """Return a token that code gives, held to what the setting is held to.

    Raises:
        SettingsError: it is too short, or is none that a header could carry.
    """
    try:
        return _is_token(SecretStr(given) if isinstance(given, str) else given)
    except ValueError as error:
        raise SettingsError(f"the token {error}") from None


def _are_hosts(values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if value != "*" and not re.fullmatch(r"[A-Za-z0-9._-]+", value):
            raise ValueError(f"{value!r:.100} is no name such as germane.example.com: leave out http:// and the port")
    return values


def _is_http(value: SecretStr) -> SecretStr:
    try:
        parts = urlsplit(value.get_secret_value())
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, half an IPv6 address; its text may quote a password
        usable = False
    if not usable:
        raise ValueError("must start with http:// or https://, and name a host")
    return value


def _is_database(value: str) -> str:
    if not value.startswith(("sqlite:", "postgresql:", "postgresql+psycopg:")):
        raise ValueError("must be an SQLAlchemy URL of SQLite or PostgreSQL, such as sqlite:///germane.db")
    return value


TRACE_PLACES = ("trace_id", "span_id")


def _leads_to_trace(value: str) -> str:
    """Take a link into which nothing but ids is put: no text of a user ever goes out by it."""
    _is_http(SecretStr(value))
    named = re.findall(r"{([^{}]*)}", value)
    bare = re.sub(r"{[^{}]*}", "", value)
    unusual = not value.isprintable() or set('{} "<>') & set(bare) or "{" in urlsplit(value).netloc
    if unusual or not named or set(named) - set(TRACE_PLACES):
        raise ValueError("must hold {trace_id} or {span_id} behind its host, and nothing else in braces")
    return value


def _split(value: Any) -> Any:
    """Read ``a,b`` as a list: environment variables are text."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


Secret = Annotated[SecretStr, BeforeValidator(_read_secret)]
Key = Annotated[SecretStr, BeforeValidator(_read_secret), AfterValidator(_is_key)]
Token = Annotated[SecretStr, BeforeValidator(_read_secret), AfterValidator(_is_token)]
DatabaseAddress = Annotated[str, BeforeValidator(_read_secret), AfterValidator(_is_database)]
TraceLink = Annotated[str, AfterValidator(_leads_to_trace)]
WebAddress = Annotated[SecretStr, BeforeValidator(_read_secret), AfterValidator(_is_http)]
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
HostNames = Annotated[Names, AfterValidator(_are_hosts)]
Statuses = Annotated[tuple[Status, ...], NoDecode, BeforeValidator(_split)]
Reference = Annotated[str, AfterValidator(_is_reference)]
"""Where a secret stands: read with :func:`read_secret` whenever it is needed."""
PlainAddress = Annotated[str, AfterValidator(_is_plain)]
PlainAddresses = Annotated[Names, AfterValidator(_are_plain)]


def _is_dimension(value: str) -> str:
    if not DIMENSION.fullmatch(value):
        raise ValueError("must be model, prompt_version or attributes.NAME, of letters, digits and _ . : -")
    return value


def _without_route(dimensions: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dimension for dimension in dimensions if dimension != ROUTE)  # by which trends always go


ROUTE = "route"
DIMENSION = re.compile(r"route|model|prompt_version|attributes\.[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}")
Dimensions = Annotated[
    tuple[Annotated[str, AfterValidator(_is_dimension)], ...],
    NoDecode,
    BeforeValidator(_split),
    AfterValidator(_without_route),
]
