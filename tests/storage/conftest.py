"""Fixtures: a clock, exchanges, stores, and a proxy that interrupts connections to PostgreSQL."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.conftest import TEMPLATE, migrated_file
from tests.storage.archive_templates import Copy, Templates

from germane.exchange import Exchange
from germane.storage import ExchangeWriter, SamplingDecision, TrackingStore
from germane.testing import Clock

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ELEVEN = NOON - timedelta(hours=1)


@pytest.fixture
def clock() -> Clock:
    """A clock that starts at noon."""
    return Clock(NOON)


@pytest.fixture
def store(migrated_url: str, clock: Clock) -> Iterator[TrackingStore]:
    """A migrated store that uses the clock."""
    opened = TrackingStore(migrated_url, clock=clock)
    yield opened
    opened.close()


@pytest.fixture
def sqlite_store(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, clock: Clock) -> Iterator[TrackingStore]:
    """A migrated store on SQLite, for tests that do not depend on the database."""
    file = shutil.copy(migrated_file(tmp_path_factory.getbasetemp()), tmp_path / "only.db")
    opened = TrackingStore(f"sqlite:///{file}", clock=clock)
    yield opened
    opened.close()


def an_exchange(minutes: float = 0, **given: Any) -> Exchange:
    """Return an exchange that started ``minutes`` after eleven."""
    defaults: dict[str, Any] = {
        "id": uuid4().hex,
        "trace_id": uuid4().hex,
        "span_id": uuid4().hex[:16],
        "service": "shop",
        "route": "ask",
        "question": "How do I pay?",
        "answer": "By card.",
        "started_at": ELEVEN + timedelta(minutes=minutes),
    }
    return Exchange(**defaults | given)


@pytest.fixture
def make() -> Callable[..., Exchange]:
    """A function that creates exchanges, given minutes after eleven and any field."""
    return an_exchange


@pytest.fixture(scope="session")
def sqlite_templates(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    """Filled and archived SQLite databases."""
    return Templates(tmp_path_factory.mktemp("sqlite-templates"), an_exchange, None)


@pytest.fixture(scope="session")
def postgresql_templates(tmp_path_factory: pytest.TempPathFactory, postgresql: Any) -> Templates:
    """Filled and archived PostgreSQL databases."""
    return Templates(tmp_path_factory.mktemp("postgresql-templates"), an_exchange, postgresql)


@pytest.fixture(params=["sqlite", "postgresql"])
def templates(request: pytest.FixtureRequest) -> Templates:
    """Filled and archived databases, once on SQLite and once on PostgreSQL."""
    found: Templates = request.getfixturevalue(f"{request.param}_templates")
    return found


@pytest.fixture
def filled(templates: Templates, tmp_path: Path, clock: Clock) -> Iterator[Copy]:
    """A database with two days of scored exchanges, once on SQLite and once on PostgreSQL."""
    with templates.copy("filled", tmp_path, clock) as copy:
        yield copy


@pytest.fixture
def archived(templates: Templates, tmp_path: Path, clock: Clock) -> Iterator[Copy]:
    """A database whose two days are archived without text, once on SQLite and once on PostgreSQL."""
    with templates.copy("archived", tmp_path, clock) as copy:
        yield copy


@pytest.fixture
def sqlite_filled(sqlite_templates: Templates, tmp_path: Path, clock: Clock) -> Iterator[Copy]:
    """A database with two days of scored exchanges, on SQLite."""
    with sqlite_templates.copy("filled", tmp_path, clock) as copy:
        yield copy


@pytest.fixture
def sqlite_archived(sqlite_templates: Templates, tmp_path: Path, clock: Clock) -> Iterator[Copy]:
    """A database whose two days are archived without text, on SQLite."""
    with sqlite_templates.copy("archived", tmp_path, clock) as copy:
        yield copy


@pytest.fixture
def postgresql_filled(postgresql_templates: Templates, tmp_path: Path, clock: Clock) -> Iterator[Copy]:
    """A database with two days of scored exchanges, on PostgreSQL."""
    with postgresql_templates.copy("filled", tmp_path, clock) as copy:
        yield copy


@pytest.fixture
def sampled(store: TrackingStore) -> Callable[..., list[Exchange]]:
    """A function that writes exchanges and assigns all of them to scorers."""

    def write(*exchanges: Exchange, probability: float = 1.0, scorers: dict[str, str] | None = None) -> list[Exchange]:
        store.exchanges.add(exchanges)
        decisions = [SamplingDecision(exchange.id, probability, "uniform") for exchange in exchanges]
        store.sampling.assign_tasks(decisions, scorers or {"relevancy": "f1"})
        return list(exchanges)

    return write


@pytest.fixture
def write_to() -> Iterator[Callable[..., ExchangeWriter]]:
    """A function that creates writers, which are stopped after the test even if it fails."""
    with ExitStack() as stack:

        def write_to(store: TrackingStore, **given: Any) -> ExchangeWriter:
            writer = ExchangeWriter(store, **given)
            stack.callback(writer.stop, 1.0)
            return writer

        yield write_to


class PostgresProxy:
    """Forwards connections to a PostgreSQL socket, until it is disconnected."""

    def __init__(self, target: Path, directory: Path) -> None:
        self._target = target / ".s.PGSQL.5432"
        self._path = directory / ".s.PGSQL.5432"
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.directory = directory
        self.reconnect()

    def reconnect(self) -> None:
        """Accept connections."""
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self._path))
        listener.listen()
        self._sockets = [listener]
        self._run(self._accept, listener)

    def disconnect(self) -> None:
        """Break every connection and accept no new ones."""
        self._path.unlink()
        self._shut(self._sockets[:1])
        self._threads[0].join()  # no connection is accepted after this
        self._shut(self._sockets[1:])
        for thread in self._threads:
            thread.join()
        for one in self._sockets:
            one.close()
        self._threads.clear()

    def _shut(self, sockets: list[socket.socket]) -> None:
        for one in sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.socket(socket.AF_UNIX)
                self._sockets += [near, far]
                far.connect(str(self._target))
                self._run(self._pump, near, far)
                self._run(self._pump, far, near)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)

    def _run(self, work: Callable[..., None], *arguments: socket.socket) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()


@pytest.fixture
def proxy(postgresql: Any, tmp_path: Path) -> Iterator[PostgresProxy]:
    """A proxy to PostgreSQL that a test may disconnect and reconnect."""
    opened = PostgresProxy(postgresql.directory, tmp_path)
    yield opened
    opened.disconnect()


@pytest.fixture
def migrated_database(postgresql: Any) -> str:
    """The name of a migrated, empty PostgreSQL database."""
    name: str = postgresql.create(template=TEMPLATE)
    return name


@pytest.fixture
def other_store(migrated_url: str, clock: Clock) -> Iterator[TrackingStore]:
    """Another store on the same database."""
    opened = TrackingStore(migrated_url, clock=clock)
    yield opened
    opened.close()
