"""Whether anything scores, what waits, what it costs, and whether the data is fresh: read once for every page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from germane.insights.context import Desk
from germane.insights.situation import TOLD
from germane.sanitize import counted
from germane.settings import Budget
from germane.storage import Allowed, Pulse, Worker, allowed

LEASES: Final = 2
"""Who was not seen for so many is gone, or holds still."""
STALE: Final = timedelta(hours=1)
"""Without a new exchange for so long, what pages show is called old."""
LATE: Final = timedelta(minutes=10)
"""What waits longer than that is late."""
State = Literal["running", "held up", "silent", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How scoring does, ready to be shown."""

    pulse: Pulse
    alive: tuple[Worker, ...]
    """Processes that score, seen last within two leases; the one seen last first."""
    silent: tuple[Worker, ...]
    """Processes that neither were seen lately nor have stopped as they should."""
    budget: Budget | None
    """Of this process's settings; those of the workers may be others."""

    @property
    def now(self) -> datetime:
        """UTC, by the database's clock: ages are by it."""
        return self.pulse.now

    @property
    def state(self) -> State:
        """``running``; ``held up`` where all that run leave their judge alone; ``silent``; ``none`` was ever seen."""
        if self.alive:
            return "held up" if self.problem is not None else "running"
        return "silent" if self.silent else "none"

    @property
    def is_well(self) -> bool:
        """Whether there is nothing that somebody should look at."""
        return self.state == "running" and not self.is_late and not self.pulse.failed and not self.silent

    @property
    def problem(self) -> str | None:
        """Why those that run do not score; None as long as one of them does."""
        problems = [one.problem for one in self.alive]
        return problems[0] if problems and all(problems) else None

    @property
    def scorers(self) -> frozenset[tuple[str, str]]:
        """What those that live score by: names with fingerprints."""
        return frozenset(pair for one in self.alive for pair in one.scorers.items())

    @property
    def seen_at(self) -> datetime | None:
        """When a process that scores was seen last; UTC."""
        return max((one.seen_at for one in (*self.alive, *self.silent)), default=None)

    @property
    def waiting(self) -> int:
        """Exchanges to be decided on, and tasks to be scored; candidates of a budget's pool do not wait."""
        return self.pulse.undecided + self.pulse.waiting

    @property
    def is_capped(self) -> bool:
        """Whether more wait than were counted."""
        return self.pulse.is_capped

    @property
    def lag(self) -> timedelta:
        """How long the oldest has waited."""
        return timedelta() if self.pulse.oldest is None else max(timedelta(), self.now - self.pulse.oldest)

    @property
    def is_late(self) -> bool:
        """Whether the oldest has waited for longer than ten minutes."""
        return self.lag > LATE

    @property
    def failed(self) -> int:
        """Scores of answers of the last hour that failed."""
        return sum(self.pulse.failed.values())

    @property
    def reason(self) -> str | None:
        """Why most of them did, such as ``judge_timeout``."""
        return max(self.pulse.failed, key=lambda reason: self.pulse.failed[reason], default=None)

    @property
    def is_stale(self) -> bool:
        """Whether no answer has come for an hour, or none ever has."""
        captured = self.pulse.captured_at
        return captured is None or self.now - captured > STALE

    @property
    def limits(self) -> Allowed | None:
        """What may be spent today up to this hour; None without a budget."""
        return None if self.budget is None else allowed(self.budget, self.now)

    @property
    def headline(self) -> str:
        """A few words: who scores."""
        if self.alive:
            running = "running" if len(self.alive) == 1 else f"{len(self.alive)} running"
            return running if self.problem is None else "held up"
        return "fell silent" if self.silent else "no worker"

    @property
    def advice(self) -> str | None:
        """What to do; None while all is well."""
        if self.state == "none":
            return "Nothing is scored until a process scores: run germane worker, or start germane with role = all."
        if self.state == "silent":
            return "The process that scored ended without stopping: look for what ended it, and start it again."
        return None if self.problem is None else self.problem

    @property
    def queue(self) -> str:
        """Return "nothing waits", or how much does."""
        more = " or more" if self.is_capped else ""
        return f"{self.waiting:,}{more} waiting" if self.waiting else "nothing waits"

    @property
    def failures(self) -> str:
        """Return how many failed in the last hour, and why most of them did."""
        if not self.failed:
            return "no failure in the last hour"
        return f"{counted(self.failed, 'failure')} in the last hour, {(self.reason or '').replace('_', ' ')}"


def health_of(desk: Desk) -> Health:
    """Read how scoring does: one transaction, a few short queries."""
    pulse = desk.store.pulse()
    since = pulse.now - LEASES * timedelta(seconds=desk.settings.lease)
    return Health(
        pulse=pulse,
        alive=tuple(one for one in pulse.workers if one.seen_at >= since),
        silent=tuple(one for one in pulse.workers if one.seen_at < since),
        budget=desk.settings.budget,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The little that every page shows of the whole."""

    open_alerts: int
    health: Health


def frame_of(desk: Desk, health: Health | None = None) -> Frame:
    """Return it by a few short readings, which are fewer where it is known already how scoring does."""
    told = sum(alert.state in TOLD for alert in desk.store.open_alerts())
    return Frame(open_alerts=told, health=health or health_of(desk))
