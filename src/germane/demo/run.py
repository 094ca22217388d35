"""A demo run: generates traffic, breaks one index, and collects what germane detects."""

from __future__ import annotations

import asyncio
import math
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import germane
from germane.demo.application import Documentation
from germane.demo.corpus import load_corpus
from germane.demo.traffic import BROKEN_ROUTE, DURATION, FAULT_TIME, plan_visits
from germane.process import stop_runtime
from germane.settings import LOCAL, load_settings
from germane.testing import OTLPReceiver

if TYPE_CHECKING:
    from germane.monitor import Alert
    from germane.storage import RowCounts, ScoredExchange, Store

SCORER: Final = "answer_relevancy"
SAMPLE_RATE: Final = 0.75
"""Share of the visits to score. A small model on one core keeps up with this rate."""
RULE: Final = {"type": "mean_threshold", "threshold": 0.45, "window": 24.0, "min_samples": 8}
"""Alert rule for each route. The mean is about 0.7 on healthy routes, and about 0.15 on the broken route."""
CONCURRENCY: Final = 2
"""Maximum number of concurrent judge requests. More of them do not make the small model faster."""
MAX_SPAN_DELAY: Final = 30.0
"""Maximum time that a span waits for its score, in seconds. It is generous, because busy machines are slow."""
DRAIN_TIMEOUT: Final = 30.0
"""Maximum time for scoring to finish after the last visit, in seconds."""
PROGRESS_INTERVAL: Final = 0.5
"""Seconds between progress reports."""
_JSON_FIELDS: Final = (
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

ProgressCallback = Callable[["DemoProgress"], None]


@dataclass(frozen=True, slots=True)
class DemoAlert:
    """An alert that the demo received."""

    route: str
    at: float
    """Seconds since the first visit."""
    state: str
    message: str


@dataclass(frozen=True, slots=True)
class DemoProgress:
    """The state of a run in progress."""

    asked: int
    visits: int
    counts: RowCounts
    broken_at: float | None
    """Seconds from the first visit to the fault, or None before the fault."""
    alerts: Sequence[DemoAlert]


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The result of a demo run. Times are seconds since the first visit."""

    captured: int
    sampled: int
    scored: int
    failed: int
    failed_reasons: dict[str, int]
    on_original_span: int
    """Number of handler spans that were exported with their score."""
    on_carrier_span: int
    """Number of scores that arrived too late for their span and were exported on a linked span instead."""
    rows: int
    fault_at: float
    before: tuple[float, int]
    """Mean and count of the broken route's scores before the fault; (nan, 0) if there are none."""
    after: tuple[float, int]
    """Mean and count of the broken route's scores after the fault; (nan, 0) if there are none."""
    alerts: list[DemoAlert]
    seconds: float
    database: str
    judge: str
    spans: int
    """Number of handler spans that the OTLP receiver received."""
    worst: list[ScoredExchange]

    @property
    def pending(self) -> int:
        """Number of sampled exchanges that were neither scored nor failed when the run ended."""
        return self.sampled - self.scored - self.failed

    def as_dict(self) -> dict[str, Any]:
        """Return the result as a dict for JSON output."""
        return {
            **{name: getattr(self, name) for name in _JSON_FIELDS},
            "mean_before": round(self.before[0], 3) if self.before[1] else None,
            "mean_after": round(self.after[0], 3) if self.after[1] else None,
            "alerts": [{"route": alert.route, "at": alert.at} for alert in self.alerts if alert.state == "firing"],
        }


def run_demo(on_progress: ProgressCallback, *, duration: float = DURATION) -> DemoResult:
    """Run the demo with ``duration`` seconds of traffic. Calls ``on_progress`` about twice per second.

    Ignores OpenTelemetry environment variables: spans go to the demo's own receiver.

    Raises:
        ScoringError: The judge does not respond.
        ModelError: The embedded judge or embedder is not installed.
    """
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        del os.environ[name]
    directory = Path(tempfile.mkdtemp(prefix="germane-demo-"))
    with OTLPReceiver() as receiver:
        os.environ.update(receiver.environment())
        try:
            return asyncio.run(_DemoRun(f"sqlite:///{directory}/demo.db", receiver, on_progress, duration).execute())
        finally:
            germane.stop()  # after an interruption, while the receiver is still running


def judge_settings() -> dict[str, Any]:
    """Return settings for the judge that the user's environment configures, or for the embedded judge if it configures
    none.

    The embedder is always the embedded one, because the rule's threshold applies to its scale.
    """
    return {"embedder": LOCAL} if load_settings().has_server else {"judge": LOCAL, "embedder": LOCAL}


class _DemoRun:
    def __init__(self, database: str, receiver: OTLPReceiver, on_progress: ProgressCallback, duration: float) -> None:
        self._database = database
        self._receiver = receiver
        self._on_progress = on_progress
        self._duration = duration
        self._alerts: list[DemoAlert] = []
        self._started_at = datetime.now(UTC)
        self._asked = 0
        self._broken_at: float | None = None

    async def execute(self) -> DemoResult:
        """Start the application, generate the traffic, and collect the result."""
        from germane.scorers import MiniLM, build_scorers

        settings: dict[str, Any] = {  # these override the user's settings, whose channels must not receive alerts
            "database": self._database,
            "service": "germane-demo",
            "role": "all",
            "capture": "span+store",
            "channels": None,
            "sample_rate": SAMPLE_RATE,
            "poll_interval": 0.5,
            "concurrency": CONCURRENCY,
            "max_span_delay": MAX_SPAN_DELAY,
            "rules": [{"scorer": SCORER, **RULE}],
            "scorers": [SCORER],
            **judge_settings(),
        }
        corpus, embedder, store = load_corpus(), MiniLM(), germane.Store(self._database)
        application = await Documentation.open(corpus, embedder.embed)
        scorer_set = build_scorers(load_settings(**settings))
        try:
            await scorer_set.check_judge()  # fail now, not after the last visit
        finally:
            await scorer_set.aclose()
        await asyncio.to_thread(germane.start, on_alert=self._receive_alert, **settings)
        self._started_at = datetime.now(UTC)
        visits = plan_visits(corpus, duration=self._duration)
        reporting = asyncio.create_task(self._report_progress(store, len(visits)))
        for visit in visits:
            await asyncio.sleep(visit.at - self._elapsed)
            if self._broken_at is None and visit.at >= FAULT_TIME * self._duration / DURATION:
                application.indexes[BROKEN_ROUTE].corrupt()
                self._broken_at = self._elapsed
            await application.ask(visit.question.route, visit.question.text)
            self._asked += 1
        await asyncio.to_thread(stop_runtime, drain_timeout=DRAIN_TIMEOUT, is_quiet=True)  # it reports its own progress
        reporting.cancel()
        await embedder.aclose()
        try:
            return self._collect_result(store)
        finally:
            store.close()

    @property
    def _elapsed(self) -> float:
        return (datetime.now(UTC) - self._started_at).total_seconds()

    async def _report_progress(self, store: Store, visits: int) -> None:
        while True:
            counts = await asyncio.to_thread(store.answers.counts)
            self._on_progress(DemoProgress(self._asked, visits, counts, self._broken_at, tuple(self._alerts)))
            await asyncio.sleep(PROGRESS_INTERVAL)

    def _receive_alert(self, alert: Alert) -> None:
        at = (alert.evaluated_at - self._started_at).total_seconds()
        self._alerts.append(DemoAlert(alert.route or "", round(at, 1), alert.state, alert.message))

    def _collect_result(self, store: Store) -> DemoResult:
        counts, spans = store.answers.counts(), {span.span_id: span for span in self._receiver.spans}.values()
        fault_at = self._broken_at or 0.0
        fault = self._started_at + timedelta(seconds=fault_at)
        kinds = [(span.attributes.get("openinference.span.kind"), span.attributes) for span in spans]
        scored_kinds = [kind for kind, attributes in kinds if "evaluations.0.evaluation.score" in attributes]
        any_answer = store.answers.worst(limit=1)
        return DemoResult(
            captured=counts.captured,
            sampled=counts.done + counts.failed + counts.pending + counts.running,
            scored=counts.done,
            failed=counts.failed,
            failed_reasons=dict(counts.failed_reasons),
            on_original_span=scored_kinds.count("CHAIN"),
            on_carrier_span=scored_kinds.count("EVALUATOR"),
            rows=counts.scores,
            fault_at=round(fault_at, 1),
            before=_load_mean(store, until=fault),
            after=_load_mean(store, since=fault),
            alerts=self._alerts,
            seconds=round(self._elapsed, 1),
            database=self._database,
            judge=(any_answer[0].score.judge or "") if any_answer else "",
            spans=sum(kind == "CHAIN" for kind, _ in kinds),
            worst=store.answers.worst(since=fault, route=BROKEN_ROUTE, scorer=SCORER, limit=3),
        )


def _load_mean(store: Store, *, since: datetime | None = None, until: datetime | None = None) -> tuple[float, int]:
    for summary in store.trends.summary(since=since, until=until, histograms=False):
        if (summary.scorer, summary.route) == (SCORER, BROKEN_ROUTE):
            return summary.mean, summary.n
    return math.nan, 0
