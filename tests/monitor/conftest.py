"""What the tests of the background share: exchanges, monitors that are stopped again, and patience with a deadline."""

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

from germane.exchange import Exchange, draw_of, new_exchange_id
from germane.monitor import Monitor
from germane.monitor.loop.backoff import Backoff
from germane.monitor.quota.limiter import shared_pace
from germane.score import Score
from germane.scorers import Scorer, build
from germane.settings import Settings, load
from germane.storage import Store
from germane.testing import FakeJudge

QUICK = Backoff(first=0.1, limit=0.4)


def wait_until(condition: Callable[[], object], timeout: float = 60.0) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.01)


@pytest.fixture
def until() -> Callable[..., None]:
    return wait_until


def make_exchange(**changes: Any) -> Exchange:
    """Return an exchange whose answer no other has: equal ones in flight would share a request."""
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
        "draw": draw_of(trace_id),
    }
    return Exchange(**values | changes)


@pytest.fixture
def new_exchange() -> Callable[..., Exchange]:
    return make_exchange


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A migrated and empty database: SQLite, or PostgreSQL where a test's parameter says so."""
    if getattr(request, "param", "sqlite") == "postgresql":
        server: PostgreSQL = request.getfixturevalue("postgresql")
        return server.emptied()
    return f"sqlite:///{shutil.copy(migrated_file(tmp_path_factory.getbasetemp()), tmp_path / 'germane.db')}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    store = Store(url)
    yield store
    store.close()


@pytest.fixture
def other_store(url: str) -> Iterator[Store]:
    """The same database, as another process has it."""
    store = Store(url)
    yield store
    store.close()


class Attached:
    """Remembers what was attached."""

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
    return load(**{"tick": 0.05, "judge_timeout": 30.0, "service": "shop"} | changes)


@pytest.fixture
def settings() -> Callable[..., Settings]:
    return fast_settings


@pytest.fixture
def start(attached: Attached) -> Iterator[Callable[..., Monitor]]:
    """Start monitors, which the end of the test stops."""
    with ExitStack() as stack:

        def start(store: Store, scorers: Sequence[Scorer] = (), *, settings: Settings, **parts: Any) -> Monitor:
            monitor = Monitor(store, scorers, settings, **{"attach": attached, "backoff": QUICK} | parts)
            stack.callback(monitor.stop, 5.0)
            monitor.start()
            return monitor

        yield start


@pytest.fixture
def start_judged(start: Callable[..., Monitor]) -> Callable[..., Monitor]:
    """Start a monitor with the real scorers, which ask the judge over HTTP."""

    def start_judged(store: Store, judge: FakeJudge | Mapping[str, Any], **changes: Any) -> Monitor:
        where = judge.settings() if isinstance(judge, FakeJudge) else judge
        parts = {name: changes.pop(name) for name in ("suppressed", "backoff", "channels") if name in changes}
        settings = fast_settings(**where | changes)
        workbench = build(settings, pace=shared_pace(settings, store))
        parts |= {"close": workbench.aclose, "give_up": workbench.give_up}
        return start(store, workbench.scorers, settings=settings, spent_until=lambda: workbench.spent_until, **parts)

    return start_judged
