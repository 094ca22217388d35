"""Where a process listens, as it is given on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from germane.cli.core.output import UNITS, Since, harmless
from germane.errors import UsageError

if TYPE_CHECKING:
    from germane.annotation import Mark
    from germane.storage import Store


HERE = "127.0.0.1"


class Address(NamedTuple):
    """A host and a port; port 0 stands for any that is free."""

    host: str
    port: int


class Listening(click.ParamType[Address]):
    """``9464``, ``0.0.0.0:9464`` or ``[::1]:9464``: this machine alone where no host is named."""

    name = "[HOST:]PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Address:
        if isinstance(value, Address):
            return value
        host, colon, port = str(value).rpartition(":")
        bare = host.removeprefix("[").removesuffix("]")
        readable = port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) < 65_536
        if not readable or (colon and not bare) or (":" in bare and bare == host):
            self.fail(f"{value!r:.100} is no address such as 9464, 0.0.0.0:9464 or [::1]:9464", param, ctx)
        return Address(bare or HERE, int(port))


MARK = "mark"


@dataclass(frozen=True, slots=True)
class Marked:
    """The newest mark, or the newest of that name."""

    name: str | None = None


class SinceMark(click.ParamType["datetime | Marked"]):
    """A moment or a span as :class:`Since` takes it, or ``mark``, or ``mark:NAME``."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime | Marked:
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]  # click passes what is converted already
        head, colon, name = value.partition(":")
        if head == MARK and (name or not colon):
            return Marked(name or None)
        moment = Since().convert(value, param, ctx)
        return moment or self.fail(f"{value!r} is no moment", param, ctx)


class Past(Since):
    """A moment that is over, or a span up to now."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime | None:
        moment = super().convert(value, param, ctx)
        if moment is not None and moment > datetime.now(UTC):
            self.fail(f"{value!r} is still to come", param, ctx)
        return moment


CENTURY = timedelta(days=36_525)
"""Further back there is no answer, and soon no date."""


class Span(click.ParamType[timedelta]):
    """A span such as ``24h`` or ``7d``, of a century at most."""

    name = "span"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        text = str(value)
        if text[-1:] in UNITS and text[:-1].isdecimal() and 0 < len(text) < 8 and int(text[:-1]):
            span = timedelta(seconds=int(text[:-1]) * UNITS[text[-1]])
            if span <= CENTURY:
                return span
        return self.fail(f"{text!r} is no span such as 24h or 7d", param, ctx)


def moment_of(store: Store, since: datetime | Marked, service: str | None) -> tuple[datetime, Mark | None]:
    """Return the moment, and the mark that it is of.

    Raises:
        UsageError: there is no such mark.
    """
    if isinstance(since, datetime):
        return since, None
    found = store.marks(name=since.name, service=service, limit=1)
    if not found:
        called = "" if since.name is None else f" called {harmless(since.name, 100)!r}"
        place = "" if service is None else f" of the service {harmless(service, 40)!r}"
        raise UsageError(f"{store.name} has no mark{called}{place}: make one with germane.mark() or 'germane mark'")
    return found[0].at, found[0]
