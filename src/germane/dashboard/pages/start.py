"""The first screen of who begins: what to write, what to run, and whether it has arrived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from germane.dashboard.web.templates import render
from germane.dashboard.web.urls import screen
from germane.insights.context import Desk
from germane.insights.health import Health, health_of
from germane.sanitize import counted
from germane.settings import LOCAL, Settings
from germane.storage import Coverage

MANY: Final = 10_000
"""Exchanges are counted up to so many."""
DECLARED: Final = 20
"""Silent handlers that are listed."""
_NO_JUDGE: Final = (
    "no judge is configured. Set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own, or judge = local; "
    "germane doctor says what is missing."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """A decorated function."""

    service: str
    route: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """The first steps, and which of them are done."""

    database: str
    """For people: without its password."""
    exists: bool
    """Whether the database is there."""
    captured: int = 0
    scored: int = 0
    """Of both not more than 10,000 are counted."""
    silent: Sequence[Handler] = ()
    """Decorated, and never called."""
    decorated: bool = False
    """Whether any handler is known."""
    obstacle: str | None = None
    """Why nothing is scored; None where something is, or where there is nothing to score."""

    @property
    def headline(self) -> str:
        """Return how far it has come, in a sentence."""
        if self.scored:
            return "It works: answers are captured and scored."
        if self.captured:
            return f"{self.told} captured, none scored yet."
        return "Nothing has been captured yet."

    @property
    def told(self) -> str:
        """Return "0 traces"."""
        return f"{counted(self.captured, 'trace')}{' or more' if self.captured >= MANY else ''}"


def beginning_of(desk: Desk) -> Beginning:
    """Read it; a database that nobody has made yet is one in which there is nothing.

    Raises:
        StorageError: the database is away or not migrated.
    """
    store = desk.store
    if store.is_absent:
        return Beginning(database=store.name, exists=False)
    counts, coverage = store.counts(at_most=MANY), store.coverage()
    silent = _silent(coverage) if counts.captured < MANY else []
    return Beginning(
        database=store.name,
        exists=True,
        captured=counts.captured,
        scored=counts.rows,
        silent=silent[:DECLARED],
        decorated=bool(coverage or counts.captured),
        obstacle=_obstacle(desk.settings, health_of(desk)) if counts.captured and not counts.rows else None,
    )


def has_begun(desk: Desk) -> bool:
    """Whether anything was ever captured.

    Raises:
        StorageError: the database is away or not migrated.
    """
    return not desk.store.is_absent and bool(desk.store.exchanges(limit=1))


def _silent(coverage: Sequence[Coverage]) -> list[Handler]:
    seen = {(one.service, one.route) for one in coverage if one.seen}
    known = {(one.service, one.route) for one in coverage}
    return [Handler(service=service, route=route) for service, route in sorted(known - seen)]


def _obstacle(settings: Settings, health: Health) -> str:
    """Say why nothing is scored though something was captured."""
    if health.problem is not None:
        return f"the judge is left alone: {health.problem}"
    if health.alive:
        return f"a process scores; {health.queue}."
    if not (settings.has_server or LOCAL in {settings.judge, settings.embedder} or settings.scorers):
        return _NO_JUDGE
    return health.advice or "no process scores: run germane worker."


def start(request: Request, desk: Desk) -> Response:
    """Answer with the first steps."""
    found = beginning_of(desk)
    return render(request, desk, None, "start.html", framed=found.exists, found=found)


def is_first_run(request: Request, desk: Desk) -> bool:
    """Whether nothing was ever captured; once something was, the database is not asked again."""
    begun = request.app.state.begun = getattr(request.app.state, "begun", False) or has_begun(desk)
    return not begun


ROUTES = (screen("/start", start),)
