"""Connections to one SQLite or PostgreSQL database, created on first use and again after a fork."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeVar
from weakref import WeakSet

from sqlalchemy import URL, Connection, Engine, create_engine, event, exc, make_url
from sqlalchemy.pool import QueuePool

from germane.errors import DatabaseNotMigrated, DatabaseUnreachable, SettingsError
from germane.storage.db.errors import ContentRefused, translate_error
from germane.storage.db.network_filesystem import (
    MountTableReader,
    read_mount_table,
    reject_network_filesystem,
)

BUSY_TIMEOUT = 15.0
"""Seconds that SQLite waits for another writer."""
CLOSE_TIMEOUT = 1.0
"""Seconds that closing waits for running transactions."""
FORK_TIMEOUT = 20.0
"""Seconds that a fork waits for transactions on SQLite. Longer than ``BUSY_TIMEOUT``."""
_READ_ONLY, _AUTOCOMMIT = "germane_reading", "germane_plain"
_CACHED_PAGES = "SET LOCAL random_page_cost = 1.1"
"""The rows of a window are close together and mostly cached. With PostgreSQL's default of 4, made for spinning disks,
the planner scans the whole tally for one day."""
_MIN_SQLITE_VERSION = (3, 35, 0)  # RETURNING

_Collection = TypeVar("_Collection")
CommitEvent = tuple[str, str, str, str]
"""Route, scorer, outcome and reason. Without a scorer, the outcome is ``stored`` or ``dropped`` and counts captured
exchanges; with a scorer, it is ``scored``, ``skipped`` or ``failed``. The reason may be empty."""
CommitListener = Callable[[Mapping[CommitEvent, int]], object]
CommitHook = Callable[[Connection], None]
"""Writes the pending changes of a transaction as its last statements."""

_PENDING: Final = "germane_pending"
"""Key of a transaction's pending changes in ``Connection.info``."""
_EVENTS: Final = "events"


def get_pending(connection: Connection, key: str, new: Callable[[], _Collection]) -> _Collection:
    """Return the collection of a key in the current transaction. ``new`` creates it."""
    collections: dict[str, Any] = connection.info.setdefault(_PENDING, {})
    pending: _Collection = collections.setdefault(key, new())
    return pending


def pop_pending(connection: Connection, key: str, new: Callable[[], _Collection]) -> _Collection:
    """Remove and return the collection of a key."""
    pending: _Collection = connection.info.get(_PENDING, {}).pop(key, None) or new()
    return pending


def record_events(connection: Connection, events: Mapping[CommitEvent, int]) -> None:
    """Record event counts, which are passed to the listener once the transaction has committed."""
    get_pending(connection, _EVENTS, Counter[CommitEvent]).update(events)


class ForkGate:
    """A gate that any number of threads can enter while it is open, and none while it is closed."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._inside = 0
        self._closed = 0

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Enter the gate for the duration of the context. Waits while the gate is closed."""
        with self._changed:
            self._changed.wait_for(lambda: not self._closed)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def close(self, timeout: float) -> bool:
        """Block new entries and wait until no thread is inside; return False after ``timeout`` seconds.

        Pair every call with a call of :meth:`open`, even if it returned False.
        """
        with self._changed:
            self._closed += 1
            return self._changed.wait_for(lambda: not self._inside, timeout)

    def open(self) -> None:
        """Undo one :meth:`close`."""
        with self._changed:
            self._closed -= 1
            self._changed.notify_all()


class Database:
    """One database. Thread-safe. A forked child opens its own connections.

    Args:
        url: SQLAlchemy URL.
        mounts: Reads the mount table, to recognize network file systems.
        before_commit: Called with the connection as the last step of each transaction that writes.
        on_commit: Called with the event counts of a transaction after its commit; must not raise.

    Raises:
        SettingsError: The URL is invalid or names an unsupported database, its driver is not installed, or the SQLite
            file is on a network file system.
    """

    def __init__(
        self,
        url: str,
        *,
        mounts: MountTableReader = read_mount_table,
        before_commit: Sequence[CommitHook] = (),
        on_commit: CommitListener = lambda _: None,
    ) -> None:
        self._before_commit = before_commit
        self._on_commit = on_commit
        self.url = _parse_url(url)
        self.name = self.url.set(query={}, drivername=self.url.get_backend_name()).render_as_string(hide_password=True)
        """The URL for display: without query parameters and without the password, which may be a query parameter."""
        self.dialect = self.url.get_backend_name()
        if self._is_file and not str(self.url.database).startswith("file:"):
            reject_network_filesystem(Path(str(self.url.database)), mounts)
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._process = os.getpid()
        self._inherited: list[Engine] = []
        self._gate = ForkGate()
        _databases.add(self)

    def __repr__(self) -> str:
        return f"Database({self.name!r})"

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Open a transaction that writes. On SQLite it holds the write lock from its start."""
        with self._in_use(), self.engine.begin() as connection:
            connection.info[_PENDING] = {}  # a rolled-back transaction may have left pending changes
            yield connection
            for hook in self._before_commit:
                hook(connection)
            events = pop_pending(connection, _EVENTS, Counter[CommitEvent])
        if events:
            self._on_commit(events)

    @contextmanager
    def read(self, *, snapshot: bool = False) -> Iterator[Connection]:
        """Open a transaction that only reads. It does not create a missing SQLite file.

        Args:
            snapshot: Whether all statements see the database as the first one does. On SQLite they always do.

        Raises:
            DatabaseNotMigrated: The SQLite file does not exist.
        """
        if self.is_absent:
            raise DatabaseNotMigrated(f"{self.name} does not exist: run 'germane db upgrade'")
        with self._in_use(), self.engine.connect() as connection:
            options = {"isolation_level": "REPEATABLE READ"} if snapshot and self.dialect == "postgresql" else {}
            reading = connection.execution_options(**{_READ_ONLY: True}, **options)
            if options:
                reading.exec_driver_sql(_CACHED_PAGES)
            yield reading

    @contextmanager
    def autocommit(self) -> Iterator[Connection]:
        """Open a connection for statements that cannot run in a transaction, such as VACUUM."""
        options = {_AUTOCOMMIT: True} if self.dialect == "sqlite" else {"isolation_level": "AUTOCOMMIT"}
        with self._in_use(), self.engine.connect() as connection:
            yield connection.execution_options(**options)

    @property
    def is_absent(self) -> bool:
        """Whether the SQLite file is missing while its directory exists."""
        path = self.url.database or ""
        if not self._is_file or path.startswith("file:"):
            return False
        return os.path.isdir(os.path.dirname(path)) and not os.path.exists(path)  # noqa: PTH110, PTH112, PTH120 - these never raise

    @property
    def engine(self) -> Engine:
        """The engine of this process."""
        if self._process != os.getpid():
            self.abandon_connections()
        if self._engine is not None:
            return self._engine
        with self._lock:
            if self._engine is None:
                self._engine = _sqlite_engine(self.url) if self.dialect == "sqlite" else _postgresql_engine(self.url)
            return self._engine

    def abandon_connections(self) -> None:
        """Drop the connections that a fork copied, without closing them: they belong to the parent."""
        self._lock = threading.Lock()  # the old lock may be held by a thread that does not exist in the child
        self._process = os.getpid()
        if self._engine is not None and not _is_memory(self.url):  # the child owns its copy of a memory database
            self._inherited.append(self._engine)  # keep a reference: garbage collection would close the connections
            self._engine = None

    def close(self) -> None:
        """Close the connections once none is in use. The next use opens new ones."""
        self._gate.close(CLOSE_TIMEOUT)  # a connection returned to the pool later would stay open
        try:
            with self._lock:
                engine, self._engine = self._engine, None
            if engine is not None:
                engine.dispose()
        finally:
            self._gate.open()

    def enable_wal(self) -> None:
        """Switch the SQLite file to the write-ahead log, which lets readers continue while a transaction writes."""
        if self.dialect != "sqlite":
            return
        deadline = time.monotonic() + BUSY_TIMEOUT
        with self._in_use(), self.engine.connect() as connection:
            cursor = connection.connection.cursor()
            while True:
                try:
                    cursor.execute("PRAGMA journal_mode = WAL")
                except sqlite3.OperationalError as error:  # the pragma does not wait for writers, unlike a transaction
                    if time.monotonic() > deadline:
                        raise DatabaseUnreachable(f"{self.name} failed: {error}") from None
                else:
                    return
                with suppress(sqlite3.OperationalError):
                    cursor.execute("BEGIN EXCLUSIVE")
                    cursor.execute("COMMIT")

    def before_fork(self) -> None:
        """Close the connections to an SQLite file once no transaction is running; open none until the fork is done."""
        if self._is_file and self._gate.close(FORK_TIMEOUT) and self._engine is not None:
            self._engine.dispose()

    def after_fork_in_parent(self) -> None:
        """Allow connections again."""
        if self._is_file:
            self._gate.open()

    def after_fork_in_child(self) -> None:
        """Replace the locks: the threads that held them do not exist in the child."""
        self._gate = ForkGate()
        self.abandon_connections()

    @property
    def _is_file(self) -> bool:
        return self.dialect == "sqlite" and not _is_memory(self.url)

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        try:
            with self._gate.enter():
                yield
        except (exc.DBAPIError, exc.TimeoutError) as error:
            raise translate_error(error, self.name) from None
        except (OverflowError, UnicodeError) as error:  # raised by the SQLite driver
            raise ContentRefused(f"{self.name} rejected a row: {type(error).__name__}") from None


_databases: WeakSet[Database] = WeakSet()


def _for_each_database(method: Callable[[Database], None]) -> None:
    for database in list(_databases):
        method(database)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=partial(_for_each_database, Database.before_fork),
        after_in_parent=partial(_for_each_database, Database.after_fork_in_parent),
        after_in_child=partial(_for_each_database, Database.after_fork_in_child),
    )


def _parse_url(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (exc.ArgumentError, ValueError):
        raise SettingsError("invalid database URL; an example is sqlite:///germane.db") from None
    if parsed.drivername in {"sqlite", "sqlite+pysqlite"}:
        if sqlite3.sqlite_version_info < _MIN_SQLITE_VERSION:
            raise SettingsError(f"germane needs SQLite 3.35 or newer; this Python has {sqlite3.sqlite_version}")
        if not parsed.database or _is_memory(parsed) or parsed.database.startswith("file:"):
            return parsed
        # Absolute, because the application may change its working directory later.
        return parsed.set(database=str(Path(parsed.database).expanduser().absolute()))
    if parsed.drivername in {"postgresql", "postgresql+psycopg"}:
        if "@" in (parsed.host or ""):
            raise SettingsError("the password in the database URL contains an @: write it as %40")
        if find_spec("psycopg") is None:
            raise SettingsError("PostgreSQL needs a driver: pip install 'germane[postgres]'")
        return parsed.set(drivername="postgresql+psycopg")
    raise SettingsError(f"unsupported database {parsed.drivername!r}: use SQLite or PostgreSQL")


def _is_memory(url: URL) -> bool:
    return url.get_backend_name() == "sqlite" and url.database in {None, "", ":memory:"}


def _sqlite_engine(url: URL) -> Engine:
    # An in-memory database exists in one connection, which one thread at a time uses.
    pool = {"pool_size": 1, "max_overflow": 0} if _is_memory(url) else {"pool_size": 5, "max_overflow": 20}
    engine = create_engine(
        url,
        poolclass=QueuePool,
        hide_parameters=True,
        connect_args={"timeout": BUSY_TIMEOUT, "isolation_level": None, "check_same_thread": False},
        pool_size=pool["pool_size"],
        max_overflow=pool["max_overflow"],
    )

    @event.listens_for(engine, "connect")
    def set_pragmas(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA synchronous = NORMAL")  # in WAL mode a commit survives any crash of the process
        cursor.execute("PRAGMA secure_delete = ON")  # overwrite erased text, whatever SQLite's build default is
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # Acquire the write lock first if the transaction writes: upgrading a read lock later fails instead of waiting.
        options = connection.get_execution_options()
        if not options.get(_AUTOCOMMIT, False):
            connection.exec_driver_sql("BEGIN" if options.get(_READ_ONLY, False) else "BEGIN IMMEDIATE")

    return engine


def _postgresql_engine(url: URL) -> Engine:
    defaults = {
        "connect_timeout": 5,
        "keepalives_idle": 30,
        "tcp_user_timeout": 20_000,  # milliseconds; by default a vanished server blocks a thread for 15 minutes
        "application_name": "germane",
    }
    arguments = {name: value for name, value in defaults.items() if name not in url.query}
    return create_engine(url, hide_parameters=True, pool_pre_ping=True, max_overflow=20, connect_args=arguments)
