"""What the doctor finds of scoring: what waits and for what, and what became of the last day's exchanges."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from germane.cli.commands.doctor.finding import ADDRESS, EMBEDDED, FIXES, MANY, NO_JUDGE, Finding
from germane.cli.render import coverage
from germane.errors import GermaneError, ScoringError, SettingsError, StorageError
from germane.sanitize import counted
from germane.score import Reason
from germane.settings import LOCAL, Settings

if TYPE_CHECKING:
    from germane.calibration import Calibration
    from germane.scorers import Workbench
    from germane.settings import Settings
    from germane.storage import Counts, Coverage, Store, Trouble


def look_at_scorers(settings: Settings, *, offline: bool) -> Iterator[Finding]:
    """Tell what scores, and whether judge and embedder answer."""
    from germane.scorers import build

    try:
        workbench = build(settings)
    except GermaneError as error:
        yield Finding("scorers", "fault", str(error), "install what is missing, or correct the setting")
        return
    if workbench.problem is not None:
        yield Finding("judge", "fault", "no judge is configured", workbench.problem)
        return
    yield Finding("scorers", "ok", ", ".join(scorer.name for scorer in workbench.scorers))
    yield from _look_at_choices(settings, workbench)
    yield from _look_at_calibration(settings, workbench)
    if workbench.judge is None and settings.scorers is None:  # who names scorers has chosen to do without
        yield Finding("judge", "note", "no judge is configured: answer_relevancy is not scored", NO_JUDGE)
    if not offline:
        yield from asyncio.run(_ask(workbench))


def _look_at_choices(settings: Settings, workbench: Workbench) -> Iterator[Finding]:
    """Look at what chooses exchanges: whether predicates are there, and filters are of scorers that run."""
    from germane.monitor.sampling.eligibility import Fitness

    try:
        Fitness(workbench.scorers, filters=settings.filters, always=settings.always)
    except SettingsError as error:
        yield Finding("choices", "fault", str(error), "correct the name; its module is imported from where this runs")
    names = {scorer.name for scorer in workbench.scorers}
    for name in settings.filters.keys() - names:
        message = f"chooses exchanges for a scorer that does not run here: {', '.join(sorted(names))}"
        yield Finding(f"filters.{name}", "note", message, "correct the name, or run that scorer")


def _look_at_calibration(settings: Settings, workbench: Workbench) -> Iterator[Finding]:
    """Say on which scale labels stand. A database that is not there is told elsewhere."""
    from germane.scorers import COSINES
    from germane.scorers.calibration.baseline_similarity import LEAST

    embedders = {scorer.name: getattr(scorer, "embedder", None) for scorer in workbench.scorers}
    models = {name: embedder.model for name, embedder in embedders.items() if name in COSINES and embedder}
    if not models:
        return
    calibrations, captured = _calibrations(settings)
    floors = {(one.embedder, one.scorer): one for one in calibrations}
    for name, model in models.items():
        if floor := floors.get((model, name)):
            yield Finding(f"labels of {name}", "ok", str(floor))
        elif captured >= LEAST:
            message = f"are not calibrated for {model}: each embedder's cosines have a scale of their own"
            yield Finding(f"labels of {name}", "note", message, "germane calibrate --save")


def _calibrations(settings: Settings) -> tuple[list[Calibration], int]:
    """Return the floors that are known, and how many exchanges there are."""
    from germane.storage import Store

    try:
        store = Store(settings.database)
    except SettingsError:
        return [], 0
    try:
        return store.calibrations(), store.counts(at_most=MANY).captured
    except StorageError:
        return [], 0
    finally:
        store.close()


async def _ask(workbench: Workbench) -> list[Finding]:
    """Ask judge and embedder something tiny: only their servers know whether key and model are good."""
    findings = []
    try:
        if workbench.judge is not None:
            findings.append(await _answers("judge", workbench.judge.model, workbench.try_judge()))
        if workbench.embedder is not None:
            asked = workbench.embedder.embed(["ok"])
            findings.append(await _answers("embedder", workbench.embedder.model, asked))
    finally:
        await workbench.aclose()
    return findings


async def _answers(about: str, model: str, asked: Any) -> Finding:
    try:
        await asked
    except ScoringError as error:
        fix = EMBEDDED if model.startswith(f"{LOCAL}:") else FIXES.get(str(error.reason), ADDRESS)
        return Finding(about, "fault", str(error), fix)
    except GermaneError as error:
        return Finding(about, "fault", str(error), "install what is missing")
    return Finding(about, "ok", f"{model} answers")


LATELY: Final = timedelta(minutes=10)
"""A limit that something waited for within it is in the way."""


@dataclass(frozen=True, slots=True)
class LimitInUse:
    """A limit, and how long the last request waited for its turn."""

    setting: str
    waited: float | None
    """Seconds that the last request waited; None before any."""
    ago: timedelta

    @property
    def is_recent(self) -> bool:
        """Whether something waited for it of late."""
        return self.waited is not None and self.ago < LATELY


def limits_in_use(store: Store, settings: Settings, now: datetime) -> list[LimitInUse]:
    """Return the limits in force."""
    from germane.monitor.quota.limiter import limits_of

    uses = {use.name: use for use in store.limit_uses()}
    found = []
    for limit in limits_of(settings):
        use, setting = uses.get(limit.name), f"{limit.name}_per_minute"
        ago = timedelta() if use is None else now - use.used_at
        found.append(LimitInUse(setting, None if use is None else use.waited, ago))
    return found


def look_at_limits(settings: Settings, limits: Sequence[LimitInUse]) -> Iterator[Finding]:
    """Tell of each limit in force how long work waits for it."""
    for use in limits:
        told = f"{getattr(settings, use.setting):g}, for all processes on this database together"
        if use.waited is None:
            yield Finding(use.setting, "ok", f"{told}; no request has asked for its turn yet")
        else:
            waited = f"the last request, {use.ago.total_seconds():.0f} s ago, waited {use.waited:.1f} s for its turn"
            yield Finding(use.setting, "ok", f"{told}; {waited}")


def look_at_budget(store: Store, settings: Settings, now: datetime) -> Iterator[Finding]:
    """Tell what of the budget is spent. That it is used up is what it is for."""
    from germane.monitor.quota.usage import check_price
    from germane.storage import spent_of, spent_until

    budget = settings.budget
    if budget is None:
        return
    try:
        check_price(settings)
    except SettingsError as error:
        yield Finding("budget", "fault", str(error), "set the price, or limit calls or tokens instead")
    spent = store.spent()
    told = f"today (UTC) {'; '.join(spent_of(budget, spent, now))}"
    until = spent_until(budget, spent, now)
    if until is None:
        yield Finding("budget", "ok", f"{told}; for all processes on this database together")
    else:
        message = f"{told}: it is spent until {until:%Y-%m-%d %H:%M} UTC, and what is to be scored till then is skipped"
        yield Finding("budget", "note", message, "raise it, or leave it at that")


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
        told = [f"{counts.rows}{more} scores, {waiting} waiting", *coverage.candidates(store.outstanding())]
        yield Finding("scoring", "ok", "; ".join(told))
    yield from _look_at_coverage(store.coverage(since=now - WINDOW))
    if settings.rules and not counts.rows:
        yield Finding("rules", "note", "there are rules, and no scores for them to look at yet")


def _look_at_coverage(covering: Sequence[Coverage]) -> Iterator[Finding]:
    """Tell what became of the last day's exchanges, and of each scorer that mostly fails."""
    for found in filter(coverage.is_told, covering):
        about = f"coverage of {found.route}, {found.scorer or coverage.NO_SCORER}"
        yield Finding(about, "ok", f"in the last day {coverage.sentence(found)}", coverage=coverage.as_dict(found))
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
