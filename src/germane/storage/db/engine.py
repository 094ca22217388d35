"""Connections to one SQLite or PostgreSQL database, opened on first use and reopened after a fork."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar
from weakref import WeakSet

from sqlalchemy import Connection, Engine, RootTransaction, exc

from germane.errors import ContentRefused, DatabaseAbsent, DatabaseNotMigrated, DatabaseUnreachable, StorageError
from germane.logging_filters import suppressed_driver
from germane.storage.db import drivers
from germane.storage.db.drivers import AUTOCOMMIT, BUSY_TIMEOUT, READ_ONLY
from germane.storage.db.errors import translate_error
from germane.storage.db.network_filesystem import (
    MountTableReader,
    read_mount_table,
    reject_network_filesystem,
)
from germane.storage.db.sqlite_file import LOG_LOST, SqliteFile

CLOSE_TIMEOUT = 1.0
"""Maximum time in seconds to wait for running transactions when closing."""
FORK_TIMEOUT = 20.0
"""Maximum time in seconds that a fork waits for SQLite transactions. Must be longer than ``BUSY_TIMEOUT``."""
WRITER_PAUSE: Final = 0.01
"""Pause in seconds between two of many transactions on SQLite."""
_PLANNER_SETTINGS = "SET LOCAL random_page_cost = 1.1; SET LOCAL parallel_setup_cost = 10000"
"""A window's rows are close together and mostly cached. With PostgreSQL's default page cost of 4, which is meant for
spinning disks, the planner would scan the whole tally to read one day. Starting parallel workers takes 5 ms, longer
than most queries, so only expensive ones use them."""

logger = logging.getLogger("germane.storage")

_Collection = TypeVar("_Collection")
_Result = TypeVar("_Result")
CommitEvent = tuple[str, str, str, str]
"""Route, scorer, outcome and reason. Without a scorer, the event is about a captured exchange, and the outcome is
``stored`` or ``dropped``. With a scorer, the outcome is ``scored``, ``skipped`` or ``failed``. The reason may be
empty."""
CommitListener = Callable[[Mapping[CommitEvent, int]], object]
CommitHook = Callable[[Connection], None]
"""Writes the pending changes of a transaction as its last statements."""

TABLES_CHECK_INTERVAL: Final = 10.0
"""Minimum time in seconds between two checks that the tables match the code. New connections are always checked."""
_IS_CHECKED: Final = "germane_is_checked"
"""Key in ``Connection.info`` of connections whose tables have been checked."""
_FAILED: Final = "failed"
"""Loss reason after an SQLite error that a lost or damaged file may have caused. The caller reports the error."""
_LOST_ERRORS: Final = (DatabaseUnreachable, DatabaseNotMigrated)
_SHARED: Final = "germane_shared"
"""Execution option of connections that see one state of the database, with the results that reads share."""
_PENDING: Final = "germane_pending"
"""Key in ``Connection.info`` for the transaction's pending changes."""
_EVENTS: Final = "events"


def get_pending(connection: Connection, key: str, new: Callable[[], _Collection]) -> _Collection:
    """Return the pending changes stored under ``key`` in the current transaction.

    If there are none yet, store ``new()``.
    """
    collections: dict[str, Any] = connection.info.setdefault(_PENDING, {})
    pending: _Collection = collections.setdefault(key, new())
    return pending


def pop_pending(connection: Connection, key: str, new: Callable[[], _Collection]) -> _Collection:
    """Remove and return the pending changes stored under ``key``. If there are none, return ``new()``."""
    pending: _Collection = connection.info.get(_PENDING, {}).pop(key, None) or new()
    return pending


def share(connection: Connection, key: Hashable, read: Callable[[], _Result]) -> _Result:
    """Return what ``read`` returns, without calling it again for a connection that sees one state of the database."""
    shared: dict[Hashable, Any] | None = connection.get_execution_options().get(_SHARED)
    if shared is None:
        return read()
    if key not in shared:
        shared[key] = read()
    result: _Result = shared[key]
    return result


def record_events(connection: Connection, events: Mapping[CommitEvent, int]) -> None:
    """Record event counts, which are passed to the listener after the transaction has committed."""
    get_pending(connection, _EVENTS, Counter[CommitEvent]).update(events)


class ForkGate:
    """A gate that any number of threads can enter while it is open, and that no thread can enter while it is closed."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._inside = 0
        self._closed = 0

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Stay inside the gate for the duration of the context. Waits while the gate is closed."""
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
        """Block new entries, and wait up to ``timeout`` seconds until no thread is inside. Return False on timeout.

        Pair every call with a call to :meth:`open`, even if it returns False.
        """
        with self._changed:
            self._closed += 1
            return self._changed.wait_for(lambda: not self._inside, timeout)

    def open(self) -> None:
        """Undo one call to :meth:`close`."""
        with self._changed:
            self._closed -= 1
            self._changed.notify_all()


class Database:
    """One database. Thread-safe. A forked child opens its own connections.

    Args:
        url: SQLAlchemy URL.
        mounts: Reads the mount table, which is used to detect network file systems.
        before_commit: Called with the connection as the last step of each transaction that writes.
        on_commit: Called with a transaction's event counts after its commit; must not raise.
        check_tables: Called with the connection and the display name; raises unless the tables match the code. Runs in
            each connection's first transaction that writes, and once per ``TABLES_CHECK_INTERVAL``, because another
            process may migrate the database.
        recreate: Creates the tables in an SQLite file that was deleted or replaced while it was open.
        prepare: Called before the first transaction that writes, and before the next one after ``check_tables`` raised.
            It may migrate the tables.

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
        check_tables: Callable[[Connection, str], None] | None = None,
        recreate: Callable[[Database], None] | None = None,
        prepare: Callable[[Database], None] | None = None,
    ) -> None:
        self._before_commit = before_commit
        self._on_commit = on_commit
        self._check_tables = check_tables
        self._recreate = recreate
        self._prepare = prepare
        self._is_prepared = False
        self._next_check = 0.0
        self.url = drivers.parse_url(url)
        self.name = self.url.set(query={}, drivername=self.url.get_backend_name()).render_as_string(hide_password=True)
        """The URL for display, without the password and without query parameters, which may contain the password."""
        self.dialect = self.url.get_backend_name()
        self._file: SqliteFile | None = None
        if self._is_file and not str(self.url.database).startswith("file:"):
            reject_network_filesystem(Path(str(self.url.database)), mounts)
            self._file = SqliteFile(str(self.url.database))
        self._loss: str | None = None
        self._was_written = False
        self._reopening = threading.Lock()
        self._lock = threading.Lock()
        self._local = threading.local()
        self._engine: Engine | None = None
        self._process = os.getpid()
        self._inherited: list[Engine] = []
        self._gate = ForkGate()
        _databases.add(self)

    def __repr__(self) -> str:
        return f"Database({self.name!r})"

    @contextmanager
    def write(self, *, migrating: bool = False, snapshot: bool = False) -> Iterator[Connection]:
        """Open a transaction that writes. On SQLite it holds the write lock from its start.

        With ``snapshot``, all statements see the same state of the database; on SQLite, they always do. If the
        transaction is ``migrating``, the tables are not checked.

        Raises:
            TransactionConflict: With ``snapshot``, another transaction has changed the same rows on PostgreSQL.
            DatabaseUnreachable: The SQLite file was deleted, replaced or damaged. The next transaction reopens it.
            DatabaseNotMigrated: The tables are missing, or older or newer than the code.
        """
        if self._loss is not None and not migrating and self._snapshot is None:
            self._reopen()
        if self._prepare is not None and not (self._is_prepared or migrating):
            self._prepare(self)
        with self._in_use(), self.engine.connect() as connection, _begin(connection, snapshot=snapshot):
            connection.info[_PENDING] = {}  # a rolled-back transaction may have left some
            is_due = time.monotonic() >= self._next_check or _IS_CHECKED not in connection.info
            if self._check_tables is not None and is_due and not migrating:
                self._is_prepared, self._next_check = False, 0.0
                self._check_tables(connection, self.name)
                self._is_prepared = True
                connection.info[_IS_CHECKED] = True
                self._next_check = time.monotonic() + TABLES_CHECK_INTERVAL
            yield connection
            for hook in self._before_commit:
                hook(connection)
            events = pop_pending(connection, _EVENTS, Counter[CommitEvent])
            if self._file is not None and not migrating:
                # This check comes last, because nothing that is committed after a loss can be read.
                self._loss = self._file.find_loss(connection.info[drivers.OPEN_FILES])
                if self._loss is not None:
                    raise DatabaseUnreachable(f"{self.name} {self._loss}")
                self._was_written = True
        if events:
            self._on_commit(events)

    @contextmanager
    def read(self, *, snapshot: bool = False) -> Iterator[Connection]:
        """Open a transaction that only reads. It does not create a missing SQLite file.

        With ``snapshot``, all statements see the same state of the database; on SQLite, they always do.

        Raises:
            DatabaseAbsent: The SQLite file does not exist.
        """
        with self._translated_errors():
            if self._snapshot is not None:
                yield self._snapshot
            else:
                with self._open_reading(snapshot=snapshot) as connection:
                    yield connection

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all reads of this thread within the block see the same state of the database, in one transaction.

        On PostgreSQL, no read can follow one that failed. Writing within the block is an error.

        Raises:
            DatabaseAbsent: The SQLite file does not exist.
        """
        if self._snapshot is not None:
            yield
            return
        opened = ExitStack()
        with self._translated_errors():
            self._local.snapshot = opened.enter_context(self._open_reading(snapshot=True))
        try:
            yield  # errors of the block, apart from those of reads, are not about the database
        finally:
            self._local.snapshot = None
            with self._translated_errors():
                opened.close()

    @property
    def _snapshot(self) -> Connection | None:
        """The connection of this thread's snapshot."""
        return getattr(self._local, "snapshot", None)

    @contextmanager
    def _open_reading(self, *, snapshot: bool) -> Iterator[Connection]:
        if self.is_absent:
            raise DatabaseAbsent(f"{self.name} does not exist: run 'germane db upgrade'")
        if self._file is not None and self._loss is None and self._file.is_replaced:
            self.close()  # open connections would still read the old file
        with self._gate.enter(), self.engine.connect() as connection:
            options = {"isolation_level": "REPEATABLE READ"} if snapshot and self.dialect == "postgresql" else {}
            reading = connection.execution_options(**{READ_ONLY: True, _SHARED: {} if snapshot else None}, **options)
            if options:
                reading.exec_driver_sql(_PLANNER_SETTINGS)
            yield reading

    @contextmanager
    def autocommit(self) -> Iterator[Connection]:
        """Open a connection for statements that cannot run in a transaction, such as VACUUM."""
        options = {AUTOCOMMIT: True} if self.dialect == "sqlite" else {"isolation_level": "AUTOCOMMIT"}
        with self._in_use(), self.engine.connect() as connection:
            yield connection.execution_options(**options)

    def let_others_write(self) -> None:
        """Leave SQLite's write lock free long enough for another process, which polls it, to acquire it."""
        if self.dialect == "sqlite":
            time.sleep(WRITER_PAUSE)

    @property
    def is_absent(self) -> bool:
        """Whether the SQLite file is missing while its directory exists."""
        path = self.url.database or ""
        if not self._is_file or path.startswith("file:"):
            return False
        return os.path.isdir(os.path.dirname(path)) and not os.path.exists(path)  # noqa: PTH110, PTH112, PTH120 - these never raise

    @property
    def path(self) -> Path | None:
        """The SQLite file, which may not exist. None for other databases and for databases in memory."""
        return None if self._file is None else Path(self._file.path)

    @property
    def files(self) -> tuple[Path, ...]:
        """Existing files: the SQLite file, its write-ahead log and the log's index. Empty for other databases."""
        if self._file is None:
            return ()
        paths = (Path(self._file.path + suffix) for suffix in ("", "-wal", "-shm"))
        return tuple(path for path in paths if path.exists())

    @property
    def engine(self) -> Engine:
        """This process's SQLAlchemy engine, created on first use."""
        if self._process != os.getpid():
            self.abandon_connections()
        if self._engine is not None:
            return self._engine
        with self._lock:
            if self._engine is None:
                if self.dialect == "sqlite":
                    self._engine = drivers.create_sqlite_engine(self.url, self._file)
                else:
                    self._engine = drivers.create_postgresql_engine(self.url)
            return self._engine

    def _reopen(self) -> None:
        """Reopen the SQLite file after a loss, and create missing tables. If that fails, the next call retries."""
        with self._reopening:
            if self._loss is None:  # another thread has reopened it
                return
            if self._loss == LOG_LOST:
                # The old connections still have the deleted log open: save what it contains.
                with suppress(StorageError), self.autocommit() as connection:
                    connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
            self.close()
            is_absent = self.is_absent
            if self._recreate is not None:
                self._recreate(self)
            if self._loss != _FAILED:
                action = "recreated the file; its earlier content is lost" if is_absent else "reopened the file"
                logger.warning("%s %s: %s", self.name, self._loss, action)
            self._loss = None

    def abandon_connections(self) -> None:
        """Drop the connections that were copied by a fork, without closing them, because the parent still uses them."""
        # The old locks may be held by threads that do not exist in the child.
        self._lock, self._reopening = threading.Lock(), threading.Lock()
        self._process, self._local = os.getpid(), threading.local()
        if self._engine is not None and not drivers.is_memory(self.url):  # the child owns its in-memory database
            self._inherited.append(self._engine)  # keep a reference: garbage collection would close the connections
            self._engine = None

    def close(self) -> None:
        """Wait briefly until no connection is in use, then close all of them. The next use opens new ones."""
        self._gate.close(CLOSE_TIMEOUT)  # a connection returned to the pool later would stay open
        try:
            with self._lock:
                engine, self._engine = self._engine, None
            if engine is not None:
                engine.dispose()
        finally:
            self._gate.open()

    def enable_wal(self) -> None:
        """Switch the SQLite file to write-ahead logging, which lets readers continue while a transaction writes."""
        if self.dialect != "sqlite":
            return
        deadline = time.monotonic() + BUSY_TIMEOUT
        with self._in_use(), self.engine.connect() as connection:
            cursor = connection.connection.cursor()
            while True:
                try:
                    cursor.execute("PRAGMA journal_mode = WAL")
                except sqlite3.OperationalError as error:  # unlike a transaction, the pragma does not wait
                    if time.monotonic() > deadline:
                        raise DatabaseUnreachable(f"{self.name} failed: {error}") from None
                else:
                    return
                with suppress(sqlite3.OperationalError):
                    cursor.execute("BEGIN EXCLUSIVE")
                    cursor.execute("COMMIT")

    def before_fork(self) -> None:
        """Close the connections to an SQLite file when no transaction is running. Block new ones during the fork."""
        if self._is_file and self._gate.close(FORK_TIMEOUT) and self._engine is not None:
            self._engine.dispose()

    def after_fork_in_parent(self) -> None:
        """Allow new connections again."""
        if self._is_file:
            self._gate.open()

    def after_fork_in_child(self) -> None:
        """Replace the locks, because the threads that held them do not exist in the child."""
        self._gate = ForkGate()
        self.abandon_connections()

    @property
    def _is_file(self) -> bool:
        return self.dialect == "sqlite" and not drivers.is_memory(self.url)

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        if self._snapshot is not None:
            raise StorageError(f"{self.name} cannot be changed within a snapshot: change it before or after the block")
        with self._translated_errors(), self._gate.enter():
            yield

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Raise the driver's errors as germane's."""
        try:
            with suppressed_driver():
                yield
        except (exc.DBAPIError, exc.TimeoutError) as error:
            translated = translate_error(error, self.name)
            # A lock and a full disk are temporary causes, unlike a lost or damaged file.
            is_temporary = isinstance(error, exc.TimeoutError) or any(
                text in str(error.orig) for text in ("locked", "is full")
            )
            if self._was_written and isinstance(translated, _LOST_ERRORS) and not is_temporary:
                self._loss = self._loss or _FAILED  # connections have cached parts of the file
            raise translated from None
        except (OverflowError, UnicodeError) as error:  # raised by the SQLite driver
            raise ContentRefused(f"{self.name} rejected a row: {type(error).__name__}") from None


def _begin(connection: Connection, *, snapshot: bool) -> RootTransaction:
    """Begin a transaction that writes."""
    if snapshot and connection.dialect.name == "postgresql":
        connection.execution_options(isolation_level="REPEATABLE READ")
    return connection.begin()


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
