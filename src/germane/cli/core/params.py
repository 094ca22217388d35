"""Parameter types for options: times, durations, listen addresses, sizes and name-value pairs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click

from germane import sanitize
from germane.errors import UsageError

if TYPE_CHECKING:
    from germane.annotation import Marker
    from germane.storage import TrackingStore

    ParamType = click.ParamType
else:

    class ParamType(click.ParamType):
        """A subscriptable ``click.ParamType``. Click's own class is generic only since 8.4."""

        def __class_getitem__(cls, value_type: object) -> type[click.ParamType]:
            return cls


ValueT = TypeVar("ValueT")
UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
MAX_DURATION: Final = timedelta(days=36_525)
"""100 years. Subtracting a longer duration from the current time may exceed the range of ``datetime``."""
LOCALHOST: Final = "127.0.0.1"
EXISTING_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_MARKER: Final = "mark"


class TextType(ParamType[ValueT]):
    """A type whose values are parsed from text.

    The name is the placeholder for a value in the help. ``parse`` raises ``click.BadParameter`` for an invalid value.
    """

    def __init__(self, name: str, parse: Callable[[str], ValueT]) -> None:
        self.name = name
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> ValueT:  # noqa: ARG002
        return self.parse(value) if isinstance(value, str) else value  # click also passes values that are parsed


def _parse_since(text: str) -> datetime:
    try:
        if text[-1:] in UNIT_SECONDS and text[:-1].isdecimal():
            return datetime.now(UTC) - timedelta(seconds=int(text[:-1]) * UNIT_SECONDS[text[-1]])
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise click.BadParameter(f"{text!r} is neither a duration such as 24h or 7d nor an ISO 8601 time") from None


def _parse_past_time(text: str) -> datetime:
    time = _parse_since(text)
    if time > datetime.now(UTC):
        raise click.BadParameter(f"{text!r} is in the future")
    return time


def _parse_age(text: str) -> datetime:
    if text[-1:] == "m":
        raise click.BadParameter(f"{text!r} is ambiguous (minutes or months); use 90d, 12h or an ISO 8601 time")
    return _parse_past_time(text)


SINCE: Final = TextType("time", _parse_since)
"""A duration before now, such as ``24h``, or an ISO 8601 time. Times without a UTC offset are local."""
PAST_TIME: Final = TextType("time", _parse_past_time)
"""A duration before now, or an ISO 8601 time in the past."""
AGE: Final = TextType("time", _parse_age)
"""A duration such as ``90d`` or ``12h``, or an ISO 8601 time in the past. Minutes are ambiguous and rejected."""


@dataclass(frozen=True, slots=True)
class MarkerName:
    """A reference to the newest marker, or to the newest marker with a given name."""

    name: str | None = None


def _parse_since_marker(text: str) -> datetime | MarkerName:
    head, colon, name = text.partition(":")
    if head == _MARKER and (name or not colon):
        return MarkerName(name or None)
    return _parse_since(text)


SINCE_MARKER: Final = TextType("time", _parse_since_marker)
"""A time in a form that :data:`SINCE` accepts, ``mark`` (the newest marker) or ``mark:NAME``."""


def resolve_since(
    store: TrackingStore, since: datetime | MarkerName, service: str | None
) -> tuple[datetime, Marker | None]:
    """Return the start of a window, and the marker that ``since`` refers to, if any.

    Raises:
        UsageError: The marker does not exist.
    """
    if isinstance(since, datetime):
        return since, None
    markers = store.trends.list_markers(name=since.name, service=service, limit=1)
    if not markers:
        name = "" if since.name is None else f" named {sanitize.line(since.name, 100)!r}"
        where = "" if service is None else f" for service {sanitize.line(service, 40)!r}"
        raise UsageError(f"no marker{name}{where} in {store.name}; add one with germane.mark() or 'germane mark'")
    return markers[0].at, markers[0]


def _parse_duration(text: str) -> timedelta:
    if text[-1:] in UNIT_SECONDS and text[:-1].isdecimal() and 0 < len(text) < 8 and int(text[:-1]):
        duration = timedelta(seconds=int(text[:-1]) * UNIT_SECONDS[text[-1]])
        if duration <= MAX_DURATION:
            return duration
    raise click.BadParameter(f"{text!r} is not a duration such as 24h or 7d")


DURATION: Final = TextType("duration", _parse_duration)
"""A duration such as ``24h`` or ``7d``, of at most 100 years."""


class ListenAddress(NamedTuple):
    """A host and a port. Port 0 means any free port."""

    host: str
    port: int


def _parse_listen_address(text: str) -> ListenAddress:
    host, colon, port = text.rpartition(":")
    bare_host = host.removeprefix("[").removesuffix("]")
    is_port = port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) < 65_536
    if not is_port or (colon and not bare_host) or (":" in bare_host and bare_host == host):
        raise click.BadParameter(f"{text!r:.100} is not an address such as 9464, 0.0.0.0:9464 or [::1]:9464")
    return ListenAddress(bare_host or LOCALHOST, int(port))


LISTEN_ADDRESS: Final = TextType("[HOST:]PORT", _parse_listen_address)
"""An address such as ``9464``, ``0.0.0.0:9464`` or ``[::1]:9464``. The default host is 127.0.0.1."""


def _parse_byte_size(text: str) -> int:
    from pydantic import ByteSize, TypeAdapter, ValidationError

    try:
        size = int(TypeAdapter(ByteSize).validate_python(text))
    except ValidationError:
        size = 0
    if size <= 0:
        raise click.BadParameter(f"{text!r} is not a size such as 500MB or 5GB")
    return size


BYTE_SIZE: Final = TextType("size", _parse_byte_size)
"""A size in bytes, with an optional unit, such as ``5GB``."""


def _parse_name_value(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise click.BadParameter(f"{text!r} does not have the form NAME=VALUE, such as tenant=acme")
    return name, value


NAME_VALUE: Final = TextType("name=value", _parse_name_value)
"""A name-value pair such as ``tenant=acme``."""


def _parse_column_names(text: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",") if pair.strip()]
    if not all(name.strip() and column.strip() for name, _, column in pairs):
        raise click.BadParameter(f"{text!r} is not a list of NAME=COLUMN pairs such as question=q,answer=a")
    return {name.strip(): column.strip() for name, _, column in pairs}


COLUMN_NAMES: Final = TextType("name=column", _parse_column_names)
"""Comma-separated NAME=COLUMN pairs such as ``question=q,answer=a``."""


class FiniteRange(click.FloatRange):
    """A finite number in a range. Unlike ``click.FloatRange``, this type rejects NaN and infinity."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        return number if math.isfinite(number) else self.fail(f"{value!r} is not finite", param, ctx)
