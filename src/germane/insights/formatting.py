"""Text formatting shared by pages and reports: numbers, dates, durations, names and captured text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final
from unicodedata import category
from urllib.parse import quote, urlencode

from markupsafe import Markup, escape

from germane import alerting, sanitize
from germane.alert import Alert
from germane.insights.context import RELEVANCY, SIMILARITY, ViewParams
from germane.score import NONCOMMITTAL
from germane.storage import MatchCount

MINUS: Final = "\u2212"
DASH: Final = "\u2013"
MAX_FIXED: Final = 1e6
"""Larger numbers are shown with an exponent."""
_AGE_UNITS: Final = (("s", 1, 60), ("min", 60, 3600), ("h", 3600, 172_800), ("d", 86_400, float("inf")))
_REDACTION: Final = re.compile(
    r"(?i:\[(?:redacted|removed|masked|hidden|erased)[^\]\n]{0,40}\])|\[[A-Z][A-Z0-9_ ]{2,30}\]|<[A-Z][A-Z_]{2,30}>"
    r"|\*{4,}|\u2588{2,}"
)
"""Placeholders that redaction functions commonly insert."""
_DOT_NAMES: Final = frozenset({"", ".", ".."})
"""Names that a browser would resolve as a relative path."""


def format_number(value: float | None, digits: int = 2) -> str:
    """Format a number, such as "0.69". Returns a dash for None, and never "-0.00"."""
    if value is None:
        return DASH
    # A retriever's score may be any number. The largest has 309 digits.
    text = f"{abs(value):.{digits}f}" if abs(value) < MAX_FIXED else f"{abs(value):.{digits + 1}g}"
    return f"{MINUS}{text}" if value < 0 and float(text) else text


def format_signed(value: float | None, digits: int = 2) -> str:
    """Format a number with its sign, such as "+0.03" or "\u22120.10". Zero has no sign."""
    text = format_number(value, digits)
    return f"+{text}" if value is not None and value > 0 and float(text) else text


def format_interval(interval: tuple[float, float] | None, digits: int = 2) -> str:
    """Format an interval, such as "0.64\u20130.75", or "\u22120.10 to 0.20" if a bound is negative."""
    if interval is None:
        return "unknown"
    low, high = format_number(interval[0], digits), format_number(interval[1], digits)
    return f"{low} to {high}" if MINUS in low + high else f"{low}{DASH}{high}"


def format_percent(share: float | None) -> str:
    """Format a share, such as "12%".

    Shares below 10% and above 90% have one decimal place, so that a small share is not shown as 0%.
    """
    if share is None:
        return DASH
    return f"{share * 100:.1f}%" if 0 < share < 0.1 or 0.9 < share < 1 else f"{share * 100:.0f}%"


def format_count(value: int) -> str:
    """Format a count, such as "12,345"."""
    return f"{value:,}"


def format_matches(matches: MatchCount) -> str:
    """Format a number of matches, or a lower bound, such as "12,345", "no" or "more than 10,000"."""
    if matches.is_capped:
        return f"more than {matches.count:,}" if matches.count else "uncounted"
    return f"{matches.count:,}" if matches.count else "no"


def format_age(moment: datetime, now: datetime) -> str:
    """Format a time relative to ``now``, such as "6 h ago", "in 3 min" or "now"."""
    passed = now - moment
    if abs(passed) < timedelta(seconds=1):
        return "now"
    seconds = abs(passed.total_seconds())
    unit, size = next((unit, size) for unit, size, limit in _AGE_UNITS if seconds < limit)
    length = f"{int(seconds // size)} {unit}"
    return f"in {length}" if passed < timedelta() else f"{length} ago"


def format_date_time(moment: datetime, view: ViewParams | None = None) -> str:
    """Format a time in the visitor's time zone, such as "Fri 20 Nov 2026, 14:05 CET"."""
    local = moment.astimezone(None if view is None else view.zone)
    return f"{local:%a} {local.day} {local:%b %Y, %H:%M %Z}"


def format_timestamp(moment: datetime, view: ViewParams | None = None) -> str:
    """Format a time in the visitor's time zone, such as "2026-11-20 14:05:09 CET"."""
    return f"{moment.astimezone(None if view is None else view.zone):%Y-%m-%d %H:%M:%S %Z}"


def format_local_input(moment: datetime, view: ViewParams) -> str:
    """Format a time in the visitor's time zone as browsers do in a form, such as "2026-11-20T14:05"."""
    return f"{moment.astimezone(view.zone):%Y-%m-%dT%H:%M}"


def format_duration(passed: timedelta) -> str:
    """Format a duration, such as "45 s", "12 min", "6 h" or "3.5 d"."""
    seconds = max(0.0, passed.total_seconds())
    for unit, size, limit in (("s", 1, 60), ("min", 60, 7_200), ("h", 3_600, 172_800)):
        if seconds < limit:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86_400:.1f} d"


def format_seconds(seconds: float) -> str:
    """Format a number of seconds like :func:`format_duration`."""
    return format_duration(timedelta(seconds=seconds))


def format_whole_hours(passed: timedelta) -> str:
    """Format a duration in hours, such as "30 hours", or in days if it is at least two days, such as "3 days"."""
    hours = int(passed.total_seconds() // 3600)
    return sanitize.count_noun(hours // 24, "day") if hours >= 48 else sanitize.count_noun(hours, "hour")


def format_run_time(seconds: float) -> str:
    """Format a run time, such as "12 ms", "3.4 s" or, if it is at least two minutes, "0:03:20"."""
    if seconds < 0.9995:
        return f"{seconds * 1_000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{timedelta(seconds=round(seconds))}"


def format_bytes(size: float) -> str:
    """Format a size in bytes, such as "3.2 MB". Units are powers of 1,000."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1_000:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1_000
    return f"{size:,.1f} TB"


@dataclass(frozen=True, slots=True)
class DateFormatter:
    """Formats short dates in one time zone. The year is shown only if it is not the current year."""

    now: datetime
    zone: tzinfo | None

    def date(self, moment: datetime) -> str:
        """Format a date, such as "18 Nov"."""
        local, now = moment.astimezone(self.zone), self.now.astimezone(self.zone)
        return f"{local.day} {local:%b}" if local.year == now.year else f"{local.day} {local:%b %Y}"

    def date_range(self, since: datetime, until: datetime) -> str:
        """Format a range of dates, such as "15 Nov to 18 Nov"."""
        first, last = self.date(since), self.date(until)
        return first if first == last else f"{first} to {last}"

    def date_time(self, moment: datetime) -> str:
        """Format a date and time, such as "18 Nov 19:00"."""
        return f"{self.date(moment)} {moment.astimezone(self.zone):%H:%M}"


def humanize(name: str) -> str:
    """Return the name of a scorer, reason or rule in words: "Answer relevancy" for ``answer_relevancy``."""
    words = to_words(name)
    return words[:1].upper() + words[1:]


def to_words(name: str) -> str:
    """Return a name in words, as within a sentence: "not sampled" for ``not_sampled``.

    The scorer ``noncommittal`` is named after its value 1, because higher is better.
    """
    return "not a refusal" if name == NONCOMMITTAL else name.replace("_", " ").strip() or name


def format_alert(alert: Alert, view: ViewParams | None = None) -> str:
    """Return an alert's message with times in the visitor's time zone and scorers in words."""
    return describe_alert(alert, lambda moment: format_date_time(moment, view))


def describe_alert(alert: Alert, moment: Callable[[datetime], str]) -> str:
    """Return an alert's message with scorers in words, and times in a given format."""
    if alert.message != alerting.alert_message(alert):  # worded by an earlier version
        return alert.message or alert.rule
    scorer = {} if alert.scorer is None else {"scorer": humanize(alert.scorer).lower()}
    shifts = tuple(
        replace(shift, name=humanize(shift.name).lower()) if shift.dimension == "scorer" else shift
        for shift in alert.shifts
    )
    shown = replace(alert, shifts=shifts, labels={**alert.labels, **scorer})
    text = alerting.alert_message(shown, moment)
    return text[:1].upper() + text[1:]


def scorer_title(scorer: str | None) -> str:
    """Return the title for a scorer's mean: "Relevancy", "Similarity", or the scorer's name in words."""
    return {None: "Relevancy", RELEVANCY: "Relevancy", SIMILARITY: "Similarity"}.get(scorer) or humanize(scorer or "")


def shorten(text: str | None, limit: int = 160) -> str:
    """Return captured text on one line, truncated to ``limit`` characters."""
    line = " ".join((text or "")[: 4 * limit].split())
    return line if len(line) <= limit and len(text or "") <= 4 * limit else line[: limit - 1].rstrip() + "\u2026"


def visible(text: str | None, placeholder: str = "(blank)") -> str:
    """Return the text, or a placeholder if it has no visible characters, so that links can be clicked."""
    return text if text and any(category(character)[0] not in "CZ" for character in text) else placeholder


def highlight_redactions(text: str) -> Markup:
    """Return captured text as escaped HTML, with redaction placeholders highlighted."""
    parts, end = [], 0
    for match in _REDACTION.finditer(text):
        placeholder = Markup('<mark class="redacted" title="redacted before storage">{}</mark>').format(match[0])
        parts += [escape(text[end : match.start()]), placeholder]
        end = match.end()
    return Markup("").join([*parts, escape(text[end:])])


def format_utc(moment: datetime) -> str:
    """Return a time for a program, to the second."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def link_window(since: datetime, until: datetime) -> str:
    """Return the part of a URL that selects answers, with short times, because a page has hundreds of them."""
    ends = [moment.astimezone(UTC) for moment in (since, until)]
    first, last = (f"{end:%Y%m%dT%H%M%S.%fZ}".replace(".000000Z", "Z").replace("0000Z", "Z") for end in ends)
    return f"since={first}&until={last}"


def quote_segment(text: str) -> str:
    """Return the text, quoted as one segment of a URL path."""
    return quote(text, safe="", errors="replace")


def route_path(name: str) -> str:
    """Return the path of a route's page. The name may contain any character."""
    return f"/r/?{urlencode({'name': name})}" if name in _DOT_NAMES else f"/r/{quote_segment(name)}"


def session_path(name: str) -> str:
    """Return the path of a session's page. The id may contain any character."""
    return f"/sessions/?{urlencode({'name': name})}" if name in _DOT_NAMES else f"/sessions/{quote_segment(name)}"


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "number": format_number,
    "utc": format_utc,
    "signed": format_signed,
    "interval": format_interval,
    "percent": format_percent,
    "count": format_count,
    "matches": format_matches,
    "ago": format_age,
    "clock": format_date_time,
    "exact": format_timestamp,
    "local_input": format_local_input,
    "duration": format_duration,
    "seconds": format_seconds,
    "run_time": format_run_time,
    "bytes": format_bytes,
    "humanize": humanize,
    "words": to_words,
    "told": format_alert,
    "shorten": shorten,
    "visible": visible,
    "highlight_redactions": highlight_redactions,
    "route_path": route_path,
    "session_path": session_path,
}
"""Filters for templates that format single values, by name."""
