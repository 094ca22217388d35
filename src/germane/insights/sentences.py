"""How a sentence on a page is made: of pieces, with means that say how sure they are, and moments of the visitor's."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from urllib.parse import quote
from zoneinfo import ZoneInfo

from germane.alert import Level
from germane.insights.situation import Before
from germane.insights.text import interval, number, route_path
from germane.insights.window import View
from germane.sanitize import counted
from germane.storage import Estimate
from germane.storage.stats.estimate import ENOUGH


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a sentence."""

    text: str
    kind: Literal["text", "strong", "route", "link"] = "text"
    href: str = ""
    """A path of this application, of a route and a link."""


def strong(text: str) -> Piece:
    """Return what is read first."""
    return Piece(text, "strong")


def link(text: str, path: str) -> Piece:
    """Return a link within this application."""
    return Piece(text, "link", path)


def place(route: str | None) -> Piece:
    """Return a route, or the service as a whole."""
    return strong("the service as a whole") if route is None else Piece(route, "route", route_path(route))


def quoted(text: str) -> str:
    """Return the text as a part of an address."""
    return quote(text, safe="", errors="replace")


def sure(one: Estimate | Level) -> str:
    """Return a mean with its interval and n; "not enough data" under 20 scores."""
    return f"{number(one.mean)} ({ends(one)})" if one.n >= ENOUGH else few(one)


def ends(one: Estimate | Level) -> str:
    """Return "95 % interval 0.42-0.54, n=57"."""
    between = "" if one.interval is None else f"95 % interval {interval(one.interval)}, "
    return f"{between}n={one.n:,}"


def few(one: Estimate | Level) -> str:
    """Return "not enough data (n=7, need 20)"."""
    return f"not enough data (n={one.n}, need {ENOUGH})"


def known(one: Estimate | Level, before: Before | None, moments: Moments) -> str:
    """Return "0.78 before (15 Nov to 18 Nov, n=803)", or "0.78 usually" with the baseline that says so."""
    if before is None:
        return f"{number(one.mean)} before (n={one.n:,})"
    what = "before (" if before.baseline is None else f"usually (baseline {before.baseline}, "
    return f"{number(one.mean)} {what}{moments.days(before.since, before.until)}, n={one.n:,})"


def before_named(before: Before, view: View) -> str:
    """Return "baseline 2, 13 Nov to 18 Nov", or "before, 13 Nov to 18 Nov", in the visitor's zone."""
    days = Moments(view.until, view.zone).days(before.since, before.until)
    return f"before, {days}" if before.baseline is None else f"baseline {before.baseline}, {days}"


def more_routes(count: int) -> str:
    """Return "1 more route", "2 more routes"."""
    return "1 more route" if count == 1 else f"{count} more routes"


@dataclass(frozen=True, slots=True)
class Moments:
    """Writes moments in a zone; the year only where it is not this one."""

    now: datetime
    zone: ZoneInfo | None

    def day(self, moment: datetime) -> str:
        """Return "18 Nov"."""
        local, now = moment.astimezone(self.zone), self.now.astimezone(self.zone)
        return f"{local.day} {local:%b}" if local.year == now.year else f"{local.day} {local:%b %Y}"

    def days(self, since: datetime, until: datetime) -> str:
        """Return "15 Nov to 18 Nov"."""
        first, last = self.day(since), self.day(until)
        return first if first == last else f"{first} to {last}"

    def clock(self, moment: datetime) -> str:
        """Return "18 Nov 19:00"."""
        return f"{self.day(moment)} {moment.astimezone(self.zone):%H:%M}"


def length(passed: timedelta) -> str:
    """Return "3 days", "30 hours"."""
    hours = int(passed.total_seconds() // 3600)
    return counted(hours // 24, "day") if hours >= 48 else counted(hours, "hour")
