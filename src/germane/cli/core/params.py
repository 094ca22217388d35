"""Parameter types for options: times, durations, listen addresses, sizes and name-value pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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


UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
MAX_DURATION: Final = timedelta(days=36_525)
"""100 years. Subtracting a longer duration from the current time may exceed the range of ``datetime``."""
LOCALHOST: Final = "127.0.0.1"
_MARKER: Final = "mark"


class Since(ParamType[datetime | None]):
    """A duration before now, such as ``24h``, or an ISO 8601 time. Times without a UTC offset are local."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime | None:
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]  # click also passes values that are already converted
        try:
            if value[-1:] in UNIT_SECONDS and value[:-1].isdecimal():
                return datetime.now(UTC) - timedelta(seconds=int(value[:-1]) * UNIT_SECONDS[value[-1]])
            return datetime.fromisoformat(value).astimezone(UTC)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is neither a duration such as 24h or 7d nor an ISO 8601 time", param, ctx)


class PastTime(Since):
    """A duration before now, or an ISO 8601 time in the past."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime | None:
        time = super().convert(value, param, ctx)
        if time is not None and time > datetime.now(UTC):
            self.fail(f"{value!r} is in the future", param, ctx)
        return time


class Age(PastTime):
    """A duration such as ``90d`` or ``12h``, or an ISO 8601 time in the past. Minutes are ambiguous and rejected."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime | None:
        if isinstance(value, str) and value[-1:] == "m":
            self.fail(f"{value!r} is ambiguous (minutes or months); use 90d, 12h or an ISO 8601 time", param, ctx)
        return super().convert(value, param, ctx)


@dataclass(frozen=True, slots=True)
class MarkerName:
    """A reference to the newest marker, or to the newest marker with a given name."""

    name: str | None = None


class SinceMarker(ParamType["datetime | MarkerName"]):
    """A time in a form that :class:`PastTime` accepts, ``mark`` (the newest marker) or ``mark:NAME``."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime | MarkerName:
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]  # click also passes values that are already converted
        head, colon, name = value.partition(":")
        if head == _MARKER and (name or not colon):
            return MarkerName(name or None)
        return Since().convert(value, param, ctx) or self.fail(f"{value!r} is not a time", param, ctx)


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


class Duration(ParamType[timedelta]):
    """A duration such as ``24h`` or ``7d``, of at most 100 years."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        text = str(value)
        if text[-1:] in UNIT_SECONDS and text[:-1].isdecimal() and 0 < len(text) < 8 and int(text[:-1]):
            duration = timedelta(seconds=int(text[:-1]) * UNIT_SECONDS[text[-1]])
            if duration <= MAX_DURATION:
                return duration
        return self.fail(f"{text!r} is not a duration such as 24h or 7d", param, ctx)


class ListenAddress(NamedTuple):
    """A host and a port. Port 0 means any free port."""

    host: str
    port: int


class ListenAddressType(ParamType[ListenAddress]):
    """An address such as ``9464``, ``0.0.0.0:9464`` or ``[::1]:9464``. The default host is 127.0.0.1."""

    name = "[HOST:]PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> ListenAddress:
        if isinstance(value, ListenAddress):
            return value
        host, colon, port = str(value).rpartition(":")
        bare_host = host.removeprefix("[").removesuffix("]")
        is_port = port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) < 65_536
        if not is_port or (colon and not bare_host) or (":" in bare_host and bare_host == host):
            self.fail(f"{value!r:.100} is not an address such as 9464, 0.0.0.0:9464 or [::1]:9464", param, ctx)
        return ListenAddress(bare_host or LOCALHOST, int(port))


class ByteSizeType(ParamType[int]):
    """A size in bytes, with an optional unit, such as ``5GB``."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from pydantic import ByteSize, TypeAdapter, ValidationError

        try:
            size = int(TypeAdapter(ByteSize).validate_python(value))
        except ValidationError:
            size = 0
        return size if size > 0 else self.fail(f"{value!r} is not a size such as 500MB or 5GB", param, ctx)


class FiniteRange(click.FloatRange):
    """A finite number in a range. Unlike ``click.FloatRange``, this type rejects NaN and infinity."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        return number if math.isfinite(number) else self.fail(f"{value!r} is not finite", param, ctx)


class NameValue(ParamType[tuple[str, str]]):
    """A name-value pair such as ``tenant=acme``."""

    name = "name=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]  # click also passes values that are already converted
        name, equals, text = value.partition("=")
        if not (name and equals):
            self.fail(f"{value!r} does not have the form NAME=VALUE, such as tenant=acme", param, ctx)
        return name, text


class ColumnNames(ParamType[dict[str, str]]):
    """Comma-separated NAME=COLUMN pairs such as ``question=q,answer=a``."""

    name = "name=column"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, str]:
        pairs = [pair.partition("=") for pair in str(value).split(",") if pair.strip()]
        if not all(name.strip() and column.strip() for name, _, column in pairs):
            self.fail(f"{value!r} is not a list of NAME=COLUMN pairs such as question=q,answer=a", param, ctx)
        return {name.strip(): column.strip() for name, _, column in pairs}
