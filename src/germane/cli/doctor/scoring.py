"""What the doctor finds of scoring: what waits and for what, and what became of the last day's exchanges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from germane.cli import covered
from germane.cli.doctor.finding import FIXES, MANY, Finding
from germane.cli.doctor.limits import limits_in_use, look_at_budget, look_at_limits
from germane.score import Reason
from germane.shown import counted

if TYPE_CHECKING:
    from germane.settings import Settings
    from germane.storage import Counts, Coverage, Store, Trouble

WINDOW = timedelta(hours=24)
"""How far back the doctor looks for what failed."""
WAITS_TOO_LONG = timedelta(minutes=10)
"""An exchange that has waited for this long waits for somebody who is not there."""


def look_at_scoring(store: Store, settings: Settings) -> Iterator[Finding]:
    """Tell what waits, for what, and what became of the last day."""
    counts, now = store.counts(at_most=MANY), datetime.now(UTC)
    waiting = counts.unsampled + counts.pending + counts.running
    oldest = counts.oldest_pending_at
    late = oldest is not None and now - oldest > WAITS_TOO_LONG
    limits, troubles = limits_in_use(store, settings, now), store.troubles()
    yield from map(_tell, troubles)
    yield from look_at_limits(settings, limits)
    yield from look_at_budget(store, settings, now)
    if waiting and late and any(use.is_recent for use in limits):
        fix = "raise the limit if the judge's server allows it, or lower rate"
        message = f"{_waits(counts)}, the oldest for {_span(now, oldest)}: a limit lets through less than comes"
        yield Finding("scoring", "note", message, fix)
    elif waiting and ((late and not _still_tried(troubles, now)) or (counts.unsampled and _idle(store, now))):
        fix = "run 'germane worker' with a judge on this database, or an application with germane.start(role='all')"
        yield Finding("scoring", "fault", f"{_waits(counts)}, and nobody scores", fix)
    else:
        more = " or more" if counts.rows == MANY else ""
        told = [f"{counts.rows}{more} scores, {waiting} waiting", *covered.candidates(store.outstanding())]
        yield Finding("scoring", "ok", "; ".join(told))
    yield from _look_at_coverage(store.coverage(since=now - WINDOW))
    if settings.rules and not counts.rows:
        yield Finding("rules", "note", "there are rules, and no scores for them to look at yet")


def _look_at_coverage(covering: Sequence[Coverage]) -> Iterator[Finding]:
    """Tell what became of the last day's exchanges, and of each scorer that mostly fails."""
    for found in filter(covered.is_told, covering):
        about = f"coverage of {found.route}, {found.scorer or covered.NO_SCORER}"
        yield Finding(about, "ok", f"in the last day {covered.sentence(found)}", coverage=covered.as_dict(found))
        if found.failed and sum(found.failed.values()) > found.scored:
            reason = max(found.failed, key=lambda name: found.failed[name])
            yield Finding(
                f"scorer {found.scorer}",
                "fault",
                f"most scores of route {found.route} failed in the last day: {dict(found.failed)}",
                FIXES.get(reason, "look at the log of the process that scores"),
            )


def _tell(trouble: Trouble) -> Finding:
    """Tell what scores wait for. A judge that is merely busy is daily life."""
    more = " or more" if trouble.is_capped else ""
    told = (
        f"{trouble.tasks}{more} scores wait, the oldest since {trouble.since:%Y-%m-%d %H:%M} UTC, and are tried again"
    )
    message = f"{told} by themselves: {_named(trouble)}"
    busy = trouble.reason is Reason.JUDGE_RATE_LIMITED
    return Finding(f"scorer {trouble.scorer}", "note" if busy else "fault", message, FIXES.get(trouble.reason))


def _named(trouble: Trouble) -> str:
    """Return reason and error, the reason once."""
    return trouble.error if trouble.error.startswith(f"{trouble.reason}:") else f"{trouble.reason}: {trouble.error}"


def _waits(counts: Counts) -> str:
    """Return what waits: an exchange with three scorers waits for three scores."""
    parts = ((counts.pending + counts.running, "score"), (counts.unsampled, "undecided exchange"))
    told = [counted(number, what) for number, what in parts if number]
    total = sum(number for number, _ in parts)
    return f"{' and '.join(told)} {'waits' if total == 1 else 'wait'}"


def _still_tried(troubles: Sequence[Trouble], now: datetime) -> bool:
    """Whether somebody has tried lately what waits."""
    return any(now - trouble.until < WAITS_TOO_LONG for trouble in troubles)


def _span(now: datetime, then: datetime | None) -> str:
    return f"{(now - (then or now)) / timedelta(minutes=1):.0f} minutes"


def _idle(store: Store, now: datetime) -> bool:
    """Whether even the newest exchange has waited for long."""
    newest = store.exchanges(limit=1)
    return bool(newest) and now - newest[0].started_at > WAITS_TOO_LONG
