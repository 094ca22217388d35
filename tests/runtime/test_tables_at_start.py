"""A new database: the first process creates the tables, or says what it waits for."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from contextlib import closing
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from click.testing import CliRunner

import germane
from germane.cli.app import group
from germane.process import current_runtime
from germane.storage import TrackingStore

Until = Callable[..., None]
Warnings = Callable[[], list[str]]
START = """
import germane, sys
print("ready", flush=True)
sys.stdin.readline()
germane.start(scorers=())

@germane.observe
def ask(question: str) -> str:
    return "By card."

for number in range(10):
    ask(f"How do I pay {number}?")
sys.exit(not germane.stop(60))
"""


@germane.observe
def ask(question: str) -> str:
    """Answer immediately."""
    return "By card, in the shop."


def start_and_ask(url: str, **settings: Any) -> None:
    """Start germane and ask three questions."""
    germane.start(database=url, scorers=(), poll_interval=0.05, **settings)
    for number in range(3):
        ask(f"How do I pay {number}?")


def stored(url: str) -> int:
    """Return the number of stored exchanges."""
    with closing(TrackingStore(url)) as store:
        return store.answers.counts().captured


@pytest.mark.slow
def test_processes_that_start_at_once_create_the_tables_and_lose_nothing(
    database_url: str, program: Callable[..., subprocess.Popen[str]]
) -> None:
    """The first run of an application on an empty database stores every exchange, and prints nothing."""
    processes = [program(START, GERMANE_DATABASE=database_url) for _ in range(4)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()

    assert [process.communicate(timeout=120) for process in processes] == [("", "")] * 4
    assert [process.returncode for process in processes] == [0] * 4
    assert stored(database_url) == 40


def test_tables_are_created_when_the_server_becomes_reachable(postgresql: Any, tmp_path: Any, until: Until) -> None:
    """The server starts after the application, and is empty."""
    name = postgresql.create()
    start_and_ask(postgresql.url(name, tmp_path))
    running = current_runtime()
    assert running is not None
    until(lambda: running.writer.problem)

    (tmp_path / ".s.PGSQL.5432").symlink_to(postgresql.directory / ".s.PGSQL.5432")

    assert germane.stop(60)
    assert stored(postgresql.url(name)) == 3


def test_without_auto_migrate_exchanges_wait_for_the_command(
    database_url: str, warnings: Warnings, until: Until
) -> None:
    """The first line names the command. Nothing is lost, and nothing else is logged."""
    start_and_ask(database_url, auto_migrate=False)
    until(warnings)
    assert "run 'germane db upgrade'; up to 10000 exchanges will wait in memory until it is migrated" in warnings()[0]

    assert CliRunner().invoke(group, ["db", "upgrade", "--database", database_url]).exit_code == 0

    assert germane.flush(60)
    assert stored(database_url) == 3
    assert germane.stop(60)


def test_a_role_that_may_not_create_tables_waits_for_one_that_may(
    postgresql: Any, warnings: Warnings, until: Until
) -> None:
    """The first line names the missing right and both commands. Nothing is lost once they have run."""
    name, role = postgresql.create(), f"app_{uuid4().hex}"
    postgresql.execute(f"CREATE ROLE {role} LOGIN", "REVOKE CREATE ON SCHEMA public FROM PUBLIC", database=name)
    start_and_ask(postgresql.url(name).replace("postgres@", f"{role}@"))
    until(warnings)
    line = warnings()[0]
    assert "has no germane tables, and this process may not create them (permission denied for schema public)" in line
    assert "run 'germane db upgrade' as a role that may, and grant this role SELECT, INSERT, UPDATE and DELETE" in line
    assert "up to 10000 exchanges will wait in memory" in line

    with closing(TrackingStore(postgresql.url(name))) as store:
        store.migrate()
    rights = (
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}",
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}",
    )
    postgresql.execute(*rights, database=name)

    assert germane.flush(60)
    assert germane.stop(60)
    assert stored(postgresql.url(name)) == 3
    with psycopg.connect(postgresql.url(name)) as connection:
        connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())
