"""The connection to one database: SQLite or PostgreSQL, made when it is first used, and anew after a fork."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from weakref import WeakSet

from sqlalchemy import URL, Connection, Engine, create_engine, event, exc, make_url
from sqlalchemy.pool import QueuePool

from germane.errors import DatabaseNotMigrated, DatabaseUnreachable, SettingsError
from germane.storage.counts import dirty_hours, tally
from germane.storage.db import commit_events
from germane.storage.db.errors import ContentRefused, translated
from germane.storage.db.network_filesystem import Mounts, read_mounts, refuse_network


class Gate:
    """Lets any number of threads through, or none."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._inside = 0
        self._shut = 0

    @contextmanager
    def passed(self) -> Iterator[None]:
        """Be inside; waits while the gate is shut."""
        with self._changed:
            self._changed.wait_for(lambda: not self._shut)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def shut(self, timeout: float) -> bool:
        """Let nobody in; True once nobody is inside, False when that took longer than ``timeout`` seconds.

        Each call wants a call of :meth:`open`, whatever it returned.
        """
        with self._changed:
            self._shut += 1
            return self._changed.wait_for(lambda: not self._inside, timeout)

    def open(self) -> None:
        """Let everybody in again, unless somebody else keeps it shut."""
        with self._changed:
            self._shut -= 1
            self._changed.notify_all()


BUSY_TIMEOUT = 15.0
"""Seconds for which SQLite waits for another writer."""
CLOSE_TIMEOUT = 1.0
"""Seconds for which closing waits for transactions under way."""
FORK_TIMEOUT = 20.0
"""Seconds for which a fork waits for a transaction on SQLite: longer than one can wait for another writer."""
_READING, _PLAIN = "germane_reading", "germane_plain"
_FROM_MEMORY = "SET LOCAL random_page_cost = 1.1"
"""What is read of a window lies close together and mostly in memory: at PostgreSQL's 4, made for disks that turn, it
reads all of the tally for one day of it."""
_OLDEST_SQLITE = (3, 35, 0)  # RETURNING


class Database:
    """One database. Safe to share between threads; a forked child gets connections of its own.

    Raises:
        SettingsError: the URL cannot be read, is of another kind of database, or its driver is not installed; or
            SQLite's file lies on a network file system.
    """

    def __init__(self, url: str, *, mounts: Mounts = read_mounts, told: commit_events.Told = lambda _: None) -> None:
        self._told = told
        self.url = _parsed(url)
        self.name = _displayed(self.url)
        self.dialect = self.url.get_backend_name()
        if self._shared_by_file and not str(self.url.database).startswith("file:"):
            refuse_network(Path(str(self.url.database)), mounts)
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._process = os.getpid()
        self._inherited: list[Engine] = []
        self._gate = Gate()
        _databases.add(self)

    def __repr__(self) -> str:
        return f"Database({self.name!r})"

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Open a transaction that writes; on SQLite it holds the one write lock from its beginning."""
        with self._in_use(), self.engine.begin() as connection:
            for noted in (commit_events, dirty_hours, tally):
                noted.take(connection)  # in a transaction that came to nothing
            yield connection
            dirty_hours.settle(connection)
            tally.settle(connection)
            ended = commit_events.take(connection)
        if ended:
            self._told(ended)

    @contextmanager
    def read(self, *, snapshot: bool = False) -> Iterator[Connection]:
        """Open a transaction that only reads; it does not bring SQLite's file into being.

        Args:
            snapshot: Whether all its statements must see the database as the first one does; on SQLite they always do.

        Raises:
            DatabaseNotMigrated: there is no such file yet.
        """
        if self.is_absent:
            raise DatabaseNotMigrated(f"there is no {self.name} yet: run 'germane db upgrade'")
        with self._in_use(), self.engine.connect() as connection:
            options = {"isolation_level": "REPEATABLE READ"} if snapshot and self.dialect == "postgresql" else {}
            reading = connection.execution_options(**{_READING: True}, **options)
            if options:
                reading.exec_driver_sql(_FROM_MEMORY)
            yield reading

    @contextmanager
    def autocommit(self) -> Iterator[Connection]:
        """Open a connection on which each statement is a transaction of its own: for what can be in none."""
        options = {_PLAIN: True} if self.dialect == "sqlite" else {"isolation_level": "AUTOCOMMIT"}
        with self._in_use(), self.engine.connect() as connection:
            yield connection.execution_options(**options)

    @property
    def is_absent(self) -> bool:
        """Whether SQLite's file is not there, though its directory is."""
        path = self.url.database or ""
        if not self._shared_by_file or path.startswith("file:"):
            return False
        return os.path.isdir(os.path.dirname(path)) and not os.path.exists(path)  # noqa: PTH110, PTH112, PTH120 - these never raise

    @property
    def engine(self) -> Engine:
        """The engine of this process."""
        if self._process != os.getpid():
            self.forget()
        engine = self._engine
        return engine if engine is not None else self._made()

    def forget(self) -> None:
        """Leave the connections that a fork copied to the parent, whose they are: unused and unclosed."""
        self._lock = threading.Lock()  # the old one may have been held by a thread that is not here
        self._process = os.getpid()
        if self._engine is not None and not _is_memory(self.url):  # memory was copied, and is the child's own
            self._inherited.append(self._engine)  # kept, because collecting it would close them
            self._engine = None

    def close(self) -> None:
        """Close the connections, once nobody uses one; the next use opens new ones."""
        self._gate.shut(CLOSE_TIMEOUT)  # else what is given back later is never closed
        try:
            with self._lock:
                engine, self._engine = self._engine, None
            if engine is not None:
                engine.dispose()
        finally:
            self._gate.open()

    def use_write_ahead_log(self) -> None:
        """Let readers of SQLite's file go on while somebody writes; the file remembers it."""
        if self.dialect == "sqlite":
            with self._in_use(), self.engine.connect() as connection:
                self._change_to_wal(connection.connection.cursor())

    def _change_to_wal(self, cursor: Any) -> None:
        deadline = time.monotonic() + BUSY_TIMEOUT
        while True:
            try:
                cursor.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:  # it does not wait for others, which a transaction does
                if time.monotonic() > deadline:
                    raise DatabaseUnreachable(f"{self.name} does not work: {error}") from None
            else:
                return
            with suppress(sqlite3.OperationalError):
                cursor.execute("BEGIN EXCLUSIVE")
                cursor.execute("COMMIT")

    def before_fork(self) -> None:
        """Close SQLite's connections, once no transaction is under way, and open none until the fork is done."""
        if self._shared_by_file and self._gate.shut(FORK_TIMEOUT) and self._engine is not None:
            self._engine.dispose()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        if self._shared_by_file:
            self._gate.open()

    def after_fork_in_child(self) -> None:
        """Begin anew: the threads that used these locks are not here."""
        self._gate = Gate()
        self.forget()

    def _made(self) -> Engine:
        with self._lock:
            if self._engine is None:
                self._engine = _sqlite(self.url) if self.dialect == "sqlite" else _postgresql(self.url)
            return self._engine

    @property
    def _shared_by_file(self) -> bool:
        return self.dialect == "sqlite" and not _is_memory(self.url)

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        try:
            with self._gate.passed():
                yield
        except (exc.DBAPIError, exc.TimeoutError) as error:
            raise translated(error, self.name) from None
        except (OverflowError, UnicodeError) as error:  # from SQLite's driver, which has no error of its own for these
            raise ContentRefused(f"{self.name} refused a row: {type(error).__name__}") from None


_databases: WeakSet[Database] = WeakSet()


def _before_fork() -> None:
    for database in list(_databases):
        database.before_fork()


def _after_fork_in_parent() -> None:
    for database in list(_databases):
        database.after_fork_in_parent()


def _after_fork_in_child() -> None:
    for database in list(_databases):
        database.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (exc.ArgumentError, ValueError):
        raise SettingsError("the database's URL cannot be read; it should be like sqlite:///germane.db") from None
    if parsed.drivername in {"sqlite", "sqlite+pysqlite"}:
        return _anchored(parsed)
    if parsed.drivername in {"postgresql", "postgresql+psycopg"}:
        return _with_psycopg(parsed)
    raise SettingsError(f"germane keeps its data in SQLite or PostgreSQL, not in {parsed.drivername!r}")


def _anchored(url: URL) -> URL:
    """Return the URL with an absolute path: the application may change its directory later."""
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise SettingsError(f"germane needs SQLite 3.35 or newer, this Python has {sqlite3.sqlite_version}")
    if not url.database or _is_memory(url) or url.database.startswith("file:"):
        return url
    return url.set(database=str(Path(url.database).expanduser().absolute()))


def _with_psycopg(url: URL) -> URL:
    if "@" in (url.host or ""):
        raise SettingsError("the password in the database's URL holds an @: write it as %40")
    if find_spec("psycopg") is None:
        raise SettingsError("PostgreSQL needs a driver: pip install 'germane[postgres]'")
    return url.set(drivername="postgresql+psycopg")


def _is_memory(url: URL) -> bool:
    return url.get_backend_name() == "sqlite" and url.database in {None, "", ":memory:"}


def _displayed(url: URL) -> str:
    """Return the URL for people: without the password, wherever it stands."""
    return url.set(query={}, drivername=url.get_backend_name()).render_as_string(hide_password=True)


def _sqlite(url: URL) -> Engine:
    # A database in memory lives in its one connection, which threads take in turn.
    pool = {"pool_size": 1, "max_overflow": 0} if _is_memory(url) else {"pool_size": 5, "max_overflow": 20}
    engine = create_engine(
        url,
        poolclass=QueuePool,
        hide_parameters=True,
        connect_args={"timeout": BUSY_TIMEOUT, "isolation_level": None, "check_same_thread": False},
        pool_size=pool["pool_size"],
        max_overflow=pool["max_overflow"],
    )
    event.listen(engine, "connect", _set_pragmas)
    event.listen(engine, "begin", _begin)
    return engine


def _set_pragmas(connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous = NORMAL")  # in WAL mode a commit survives any end of the process
    cursor.execute("PRAGMA secure_delete = ON")  # erased text leaves the pages too, however SQLite was built
    cursor.close()


def _begin(connection: Connection) -> None:
    """Take the write lock at once: a reader that turns writer midway would fail instead of waiting."""
    options = connection.get_execution_options()
    if not options.get(_PLAIN, False):
        connection.exec_driver_sql("BEGIN" if options.get(_READING, False) else "BEGIN IMMEDIATE")


def _postgresql(url: URL) -> Engine:
    patience = {
        "connect_timeout": 5,
        "keepalives_idle": 30,
        "tcp_user_timeout": 20_000,  # milliseconds; else a server that vanished holds a thread for a quarter of an hour
        "application_name": "germane",
    }
    arguments = {name: value for name, value in patience.items() if name not in url.query}
    return create_engine(url, hide_parameters=True, pool_pre_ping=True, max_overflow=20, connect_args=arguments)
