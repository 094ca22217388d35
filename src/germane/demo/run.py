"""One run of the demo: visitors ask, one index goes wrong on the way, and germane is to notice."""

from __future__ import annotations

import asyncio
import math
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import germane
from germane.demo.application import Documentation
from germane.demo.corpus import read_corpus
from germane.demo.traffic import BROKEN_ROUTE, FAULT_AT, LENGTH, Visit, plan_visits
from germane.settings import LOCAL, load
from germane.testing import OTLPReceiver

if TYPE_CHECKING:
    from germane.monitor import Alert
    from germane.storage import Counts, Scored, Store
    from germane.testing.otlp_records import ReceivedSpan

RATE = 0.75
"""Share of the answers that is scored: as much as the small model on one core keeps up with."""
RULE = {"threshold": 0.45, "window": 24.0, "min_count": 8}
"""The floor rule of each route. Healthy routes have means about .7, the broken one has about .15."""
CONCURRENCY = 2
"""The small model gains nothing from more requests at a time."""
MAX_HOLD = 30.0
"""Seconds that a span waits for its score. Nobody is kept waiting here, and a busy machine takes a while."""
DRAIN = 30.0
"""Seconds that scores may be behind when the last visitor has left."""
SCORER = "answer_relevancy"
PROGRESS_EVERY = 0.5

Progress = Callable[["Moment"], None]


@dataclass(frozen=True, slots=True)
class Moment:
    """How far a run is."""

    asked: int
    visits: int
    counts: Counts
    broken_at: float | None
    """When the fault was planted."""
    alerts: Sequence[RaisedAlert]


@dataclass(frozen=True, slots=True)
class RaisedAlert:
    """An alert that came, and when."""

    route: str
    at: float
    """Seconds since the first visit."""
    state: str
    message: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run has to show. Times are seconds since the first visit."""

    captured: int
    sampled: int
    scored: int
    failed: int
    failed_reasons: dict[str, int]
    on_original_span: int
    on_carrier_span: int
    rows: int
    fault_at: float
    before: tuple[float, int]
    """Mean score of the broken route's answers before the fault, and of how many; (nan, 0) where there is none."""
    after: tuple[float, int]
    """The same since the fault."""
    alerts: list[RaisedAlert]
    seconds: float
    database: str
    judge: str
    spans: int
    """Handler spans that the OTLP receiver got."""
    worst: list[Scored]

    @property
    def waiting(self) -> int:
        """Exchanges that were drawn, and neither scored nor failed when the run ended."""
        return self.sampled - self.scored - self.failed

    def as_dict(self) -> dict[str, Any]:
        """Return what a program wants to know of it, ready for JSON."""
        told = {name: getattr(self, name) for name in _TOLD}
        means = {"mean_before": _rounded(self.before), "mean_after": _rounded(self.after)}
        return {**told, **means, "alerts": [{"route": a.route, "at": a.at} for a in self.alerts if a.state == "firing"]}


_TOLD = (
    "captured",
    "sampled",
    "scored",
    "failed",
    "failed_reasons",
    "on_original_span",
    "on_carrier_span",
    "rows",
    "fault_at",
    "seconds",
    "judge",
    "database",
)


def run(progress: Progress, *, length: float = LENGTH) -> Outcome:
    """Run the demo to its end: ``length`` seconds of visits. ``progress`` is called about twice a second.

    The environment's OpenTelemetry settings are left out of it: spans go to a receiver of the demo's own.

    Raises:
        ScoringError: the judge does not answer.
        ModelError: the embedded judge or embedder is missing.
    """
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        del os.environ[name]
    folder = Path(tempfile.mkdtemp(prefix="germane-demo-"))
    with OTLPReceiver() as receiver:
        os.environ.update(receiver.environment())
        try:
            return asyncio.run(_Run(f"sqlite:///{folder}/demo.db", receiver, progress, length).to_the_end())
        finally:
            germane.stop()  # of a run that was interrupted: while its receiver still listens


def judge_settings() -> dict[str, Any]:
    """Return the judge of the user's environment where there is one, else the embedded toy.

    The embedder is the embedded one in any case: the rule's threshold is of its scale.
    """
    return {"embedder": LOCAL} if load().has_server else {"judge": LOCAL, "embedder": LOCAL}


class _Run:
    def __init__(self, database: str, receiver: OTLPReceiver, progress: Progress, length: float) -> None:
        self._database = database
        self._receiver = receiver
        self._progress = progress
        self._length = length
        self._alerts: list[RaisedAlert] = []
        self._started_at = datetime.now(UTC)
        self._asked = 0
        self._broken_at: float | None = None

    async def to_the_end(self) -> Outcome:
        """Open the application, let the visitors in, and look at what is known afterwards."""
        from germane.scorers.local.minilm import MiniLM

        corpus, embedder, store = read_corpus(), MiniLM(), germane.Store(self._database)
        application = await Documentation.open(corpus, embedder.embed)
        await self._try_judge()
        await asyncio.to_thread(germane.start, on_alert=self._take, **self._settings())
        self._started_at = datetime.now(UTC)
        visits = plan_visits(corpus, length=self._length)
        watching = asyncio.create_task(self._tell(store, len(visits)))
        await self._let_in(application, visits)
        await asyncio.to_thread(germane.stop, drain=DRAIN)
        watching.cancel()
        await embedder.aclose()
        try:
            return self._outcome(store)
        finally:
            store.close()

    async def _try_judge(self) -> None:
        """Hear now that it does not answer, not after the last visitor."""
        from germane.scorers import build

        workbench = build(load(**self._settings()))
        try:
            await workbench.try_judge()
        finally:
            await workbench.aclose()

    def _settings(self) -> dict[str, Any]:
        """Return what the demo needs, whatever the user's own settings say: their channels are not for its alert."""
        return {
            "database": self._database,
            "service": "germane-demo",
            "role": "all",
            "capture": "span+store",
            "channels": None,
            "rate": RATE,
            "tick": 0.5,
            "concurrency": CONCURRENCY,
            "max_hold": MAX_HOLD,
            "rules": [{"scorer": SCORER, **RULE}],
            "scorers": [SCORER],
            **judge_settings(),
        }

    @property
    def _elapsed(self) -> float:
        return (datetime.now(UTC) - self._started_at).total_seconds()

    async def _let_in(self, application: Documentation, visits: Sequence[Visit]) -> None:
        """Ask each question at its time, and plant the fault on the way."""
        for visit in visits:
            await asyncio.sleep(visit.at - self._elapsed)
            if self._broken_at is None and visit.at >= FAULT_AT * self._length / LENGTH:
                application.indexes[BROKEN_ROUTE].corrupt()
                self._broken_at = self._elapsed
            await application.ask(visit.question.route, visit.question.text)
            self._asked += 1

    async def _tell(self, store: Store, visits: int) -> None:
        while True:
            counts = await asyncio.to_thread(store.counts)
            self._progress(Moment(self._asked, visits, counts, self._broken_at, tuple(self._alerts)))
            await asyncio.sleep(PROGRESS_EVERY)

    def _take(self, alert: Alert) -> None:
        at = (alert.evaluated_at - self._started_at).total_seconds()
        self._alerts.append(RaisedAlert(alert.route or "", round(at, 1), alert.state, alert.message))

    def _outcome(self, store: Store) -> Outcome:
        counts, spans = store.counts(), {span.span_id: span for span in self._receiver.spans}.values()
        fault_at = self._broken_at or 0.0
        fault = self._started_at + timedelta(seconds=fault_at)
        kinds = [span.attributes.get("openinference.span.kind") for span in spans if _is_scored(span)]
        return Outcome(
            captured=counts.captured,
            sampled=counts.done + counts.failed + counts.pending + counts.running,
            scored=counts.done,
            failed=counts.failed,
            failed_reasons=dict(counts.failed_reasons),
            on_original_span=kinds.count("CHAIN"),
            on_carrier_span=kinds.count("EVALUATOR"),
            rows=counts.rows,
            fault_at=round(fault_at, 1),
            before=_mean(store, until=fault),
            after=_mean(store, since=fault),
            alerts=self._alerts,
            seconds=round(self._elapsed, 1),
            database=self._database,
            judge=_judge(store),
            spans=sum(span.attributes.get("openinference.span.kind") == "CHAIN" for span in spans),
            worst=store.worst(since=fault, route=BROKEN_ROUTE, limit=3),
        )


def _rounded(found: tuple[float, int]) -> float | None:
    mean, n = found
    return round(mean, 3) if n else None


def _is_scored(span: ReceivedSpan) -> bool:
    return "evaluations.0.evaluation.score" in span.attributes


def _mean(store: Store, *, since: datetime | None = None, until: datetime | None = None) -> tuple[float, int]:
    found = store.means(scorer=SCORER, since=since, until=until, route=BROKEN_ROUTE)
    return (found[0].mean, found[0].n) if found else (math.nan, 0)


def _judge(store: Store) -> str:
    found = store.worst(limit=1)
    return (found[0].score.judge or "") if found else ""
