"""A clock to turn, exchanges to write, and a line to PostgreSQL that can be cut."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from germane.exchange import Exchange
from germane.storage import Decision, Store, Writer

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ELEVEN = NOON - timedelta(hours=1)


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **units: float) -> None:
        self.now += timedelta(**units)


@pytest.fixture
def clock() -> Clock:
    """A clock that shows noon."""
    return Clock()


@pytest.fixture
def store(migrated_url: str, clock: Clock) -> Iterator[Store]:
    """A store that goes by the clock."""
    opened = Store(migrated_url, clock=clock)
    yield opened
    opened.close()


@pytest.fixture
def sqlite_store(tmp_path: Path, clock: Clock) -> Iterator[Store]:
    """A migrated store on SQLite alone, for what does not depend on the database."""
    opened = Store(f"sqlite:///{tmp_path / 'only.db'}", clock=clock)
    opened.migrate()
    yield opened
    opened.close()


def an_exchange(minutes: float = 0, **given: Any) -> Exchange:
    """Return an exchange of so many minutes after eleven."""
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
    """Makes exchanges: minutes after eleven, and any field."""
    return an_exchange


@pytest.fixture
def sampled(store: Store) -> Callable[..., list[Exchange]]:
    """Writes exchanges and assigns them all to scorers."""

    def write(*exchanges: Exchange, probability: float = 1.0, scorers: dict[str, str] | None = None) -> list[Exchange]:
        store.add(exchanges)
        decisions = [Decision(exchange.id, probability, "uniform") for exchange in exchanges]
        store.assign(decisions, scorers or {"relevancy": "f1"})
        return list(exchanges)

    return write


@pytest.fixture
def write_to() -> Iterator[Callable[..., Writer]]:
    """Makes writers. They end with the test, also where it fails: no other test of the process meets their threads."""
    with ExitStack() as stack:

        def write_to(store: Store, **given: Any) -> Writer:
            writer = Writer(store, **given)
            stack.callback(writer.stop, 1.0)
            return writer

        yield write_to


class Line:
    """Forwards connections to a PostgreSQL socket, until it is cut."""

    def __init__(self, target: Path, directory: Path) -> None:
        self._target = target / ".s.PGSQL.5432"
        self._path = directory / ".s.PGSQL.5432"
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.directory = directory
        self.mend()

    def mend(self) -> None:
        """Accept connections."""
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self._path))
        listener.listen()
        self._sockets = [listener]
        self._run(self._accept, listener)

    def cut(self) -> None:
        """Break every connection and accept no more."""
        self._path.unlink()
        self._shut(self._sockets[:1])
        self._threads[0].join()  # from here on there are no new ones
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
def line(postgresql: Any, tmp_path: Path) -> Iterator[Line]:
    """A line to PostgreSQL that a test may cut and mend."""
    opened = Line(postgresql.directory, tmp_path)
    yield opened
    opened.cut()


@pytest.fixture
def migrated_database(postgresql: Any) -> str:
    """The name of a migrated and empty database on PostgreSQL."""
    name: str = postgresql.create()
    store = Store(postgresql.url(name))
    store.migrate()
    store.close()
    return name


@pytest.fixture
def other_store(migrated_url: str, clock: Clock) -> Iterator[Store]:
    """The same database, as another process has it."""
    opened = Store(migrated_url, clock=clock)
    yield opened
    opened.close()
