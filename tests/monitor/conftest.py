"""Fixtures of the monitor tests: exchanges, databases, and monitors that are stopped after each test."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import PostgreSQL, migrated_file

from germane.delivery import Backoff
from germane.exchange import Exchange, new_exchange_id, sampling_key_for
from germane.monitor import Monitor, MonitorConfig
from germane.monitor.quota.limiter import shared_rate_limiter
from germane.score import Score
from germane.scorers import Scorer, build_scorers
from germane.settings import Settings, load_settings
from germane.storage import TrackingStore
from germane.testing import FakeJudge

FAST_BACKOFF = Backoff(initial=0.1, maximum=0.4)


def wait_until(condition: Callable[[], object], timeout: float = 60.0) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "the condition was not met in time"
        time.sleep(0.01)


@pytest.fixture
def until() -> Callable[..., None]:
    return wait_until


def make_exchange(**changes: Any) -> Exchange:
    """Return an exchange with a unique answer, because identical requests in flight would be coalesced."""
    trace_id = os.urandom(16).hex()
    values: dict[str, Any] = {
        "id": new_exchange_id(),
        "trace_id": trace_id,
        "span_id": os.urandom(8).hex(),
        "service": "shop",
        "route": "ask",
        "question": "How long is the warranty of the lamp?",
        "answer": f"The warranty of the lamp is two years, says order {trace_id[:8]}.",
        "started_at": datetime.now(UTC),
        "sampling_key": sampling_key_for(trace_id),
    }
    return Exchange(**values | changes)


@pytest.fixture
def new_exchange() -> Callable[..., Exchange]:
    return make_exchange


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of an empty, migrated database: SQLite, or PostgreSQL if the test's parameter selects it."""
    if getattr(request, "param", "sqlite") == "postgresql":
        server: PostgreSQL = request.getfixturevalue("postgresql")
        return server.emptied()
    return f"sqlite:///{shutil.copy(migrated_file(tmp_path_factory.getbasetemp()), tmp_path / 'germane.db')}"


@pytest.fixture
def store(url: str) -> Iterator[TrackingStore]:
    store = TrackingStore(url)
    yield store
    store.close()


@pytest.fixture
def other_store(url: str) -> Iterator[TrackingStore]:
    """A second connection to the same database, like that of another process."""
    store = TrackingStore(url)
    yield store
    store.close()


class Attached:
    """Records the attached scores."""

    def __init__(self) -> None:
        self.calls: list[tuple[Exchange, list[Score]]] = []

    def __call__(self, exchange: Exchange, scores: Sequence[Score]) -> str:
        self.calls.append((exchange, list(scores)))
        return "carrier"

    @property
    def scores(self) -> list[Score]:
        return [score for _, scores in self.calls for score in scores]


@pytest.fixture
def attached() -> Attached:
    return Attached()


@pytest.fixture
def judge() -> Iterator[FakeJudge]:
    with FakeJudge() as judge:
        yield judge


def fast_settings(**changes: Any) -> Settings:
    return load_settings(**{"poll_interval": 0.05, "judge_timeout": 30.0, "service": "shop"} | changes)


@pytest.fixture
def settings() -> Callable[..., Settings]:
    return fast_settings


@pytest.fixture
def start(attached: Attached) -> Iterator[Callable[..., Monitor]]:
    """Start monitors that are stopped at the end of the test."""
    with ExitStack() as stack:

        def start(store: TrackingStore, scorers: Sequence[Scorer] = (), *, settings: Settings, **parts: Any) -> Monitor:
            config = MonitorConfig(store, scorers, settings, **{"attach": attached, "backoff": FAST_BACKOFF} | parts)
            monitor = Monitor(config)
            stack.callback(monitor.stop, 5.0)
            monitor.start()
            return monitor

        yield start


@pytest.fixture
def start_judged(start: Callable[..., Monitor]) -> Callable[..., Monitor]:
    """Start a monitor with the real scorers, which call the judge over HTTP."""

    def start_judged(store: TrackingStore, judge: FakeJudge | Mapping[str, Any], **changes: Any) -> Monitor:
        where = judge.settings() if isinstance(judge, FakeJudge) else judge
        parts = {name: changes.pop(name) for name in ("suppressed", "backoff", "channels") if name in changes}
        settings = fast_settings(**where | changes)
        scorer_set = build_scorers(settings, rate_limiter=shared_rate_limiter(settings, store))
        parts |= {"close": scorer_set.aclose, "cancel_judge_requests": scorer_set.stop_waiting}
        return start(
            store,
            scorer_set.scorers,
            settings=settings,
            budget_exhausted_until=lambda: scorer_set.budget_exhausted_until,
            **parts,
        )

    return start_judged
