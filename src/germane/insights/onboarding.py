"""The first steps: what has been captured and scored so far, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from germane import sanitize
from germane.insights.context import InsightContext
from germane.insights.health import load_health
from germane.settings import LOCAL

MAX_COUNTED: Final = 10_000
"""Exchanges are counted up to this number."""
MAX_HANDLERS: Final = 20
"""Handlers without calls that are listed."""
_NO_JUDGE: Final = (
    "no judge is configured. Set OPENAI_API_KEY, OPENAI_BASE_URL for your own server, or judge = local. "
    "Run germane doctor to see what is missing."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """An observed function."""

    service: str
    route: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Onboarding:
    """Progress of the first steps."""

    database: str
    """The URL without its password."""
    exists: bool
    """Whether the database exists."""
    captured: int = 0
    """At most 10,000 are counted."""
    scored: int = 0
    uncalled: Sequence[Handler] = ()
    """Observed handlers that were never called."""
    has_handlers: bool = False
    obstacle: str | None = None
    """Why nothing is scored; None if something is, or if there is nothing to score."""

    @property
    def headline(self) -> str:
        """The progress in one sentence."""
        if self.scored:
            return "Setup complete: answers are captured and scored."
        if self.captured:
            return f"{self.captured_text} captured, none scored yet."
        return "Nothing has been captured yet."

    @property
    def captured_text(self) -> str:
        """Return "12 exchanges"."""
        more = " or more" if self.captured >= MAX_COUNTED else ""
        return f"{sanitize.count_noun(self.captured, 'exchange')}{more}"


def load_onboarding(context: InsightContext) -> Onboarding:
    """Load the progress. A database that does not exist yet counts as empty.

    Raises:
        StorageError: The database is unreachable or not migrated.
    """
    store, settings = context.store, context.settings
    if store.is_absent:
        return Onboarding(database=store.name, exists=False)
    counts, coverage = store.answers.counts(at_most=MAX_COUNTED), store.trends.coverage()
    called = {(line.service, line.route) for line in coverage if line.seen}
    uncalled = sorted({(line.service, line.route) for line in coverage} - called)
    if counts.captured >= MAX_COUNTED:
        uncalled = []
    obstacle = None
    if counts.captured and not counts.scores:
        health = load_health(context)
        if health.problem is not None:
            obstacle = f"the worker does not use the judge: {health.problem}"
        elif health.running:
            obstacle = f"a worker is running; {health.backlog}."
        elif not (settings.has_server or LOCAL in {settings.judge, settings.embedder} or settings.scorers):
            obstacle = _NO_JUDGE
        else:
            obstacle = health.advice or "no worker is running: run germane worker."
    return Onboarding(
        database=store.name,
        exists=True,
        captured=counts.captured,
        scored=counts.scores,
        uncalled=[Handler(service=service, route=route) for service, route in uncalled[:MAX_HANDLERS]],
        has_handlers=bool(coverage or counts.captured),
        obstacle=obstacle,
    )


def has_exchanges(context: InsightContext) -> bool:
    """Whether anything was ever captured.

    Raises:
        StorageError: The database is unreachable or not migrated.
    """
    return not context.store.is_absent and bool(context.store.answers.list_exchanges(limit=1))
