"""Stopping respects its timeout, even if other services are down, and leaks no memory."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import combinations
from pathlib import Path

import pytest
from stoppable_databases import LockableFile, PostgreSQLServer, Stoppable

from germane.storage import TrackingStore
from germane.testing import FakeJudge, Fault

TIMEOUT = 3.0
PARTS = ("database", "judge", "collector")
USUAL = {
    "sqlite": {(), *((part,) for part in PARTS), PARTS},
    "postgresql": {("database",), PARTS},
}
"""The combinations of dead parts that are tested with each database. The others show the same with more cases."""
CASES = [
    pytest.param(
        database, dead, marks=[] if dead in USUAL[database] else pytest.mark.thorough,
        id=f"{database}-{'+'.join(dead) or 'nothing'}",
    )
    for database in USUAL
    for count in range(len(PARTS) + 1)
    for dead in combinations(PARTS, count)
]  # fmt: skip
STOP = f"""
import sys, time
import germane

@germane.observe
def ask(question):
    return "By card, in the shop."

germane.start(poll_interval=0.05)
for number in range(20):
    ask(f"How do I pay {{number}}?")
print("ready", flush=True)
sys.stdin.readline()
ask("How do I pay now?")
started = time.monotonic()
is_clean = germane.stop({TIMEOUT})
print(time.monotonic() - started, is_clean, flush=True)
"""
CYCLES = """
import gc, germane

@germane.observe
def ask(question):
    return "By card, in the shop."

def cycle(count):
    for number in range(count):
        germane.start(database="sqlite:///germane.db", poll_interval=0.05)
        ask(f"How do I pay {number}?")
        assert germane.stop(60, drain_timeout=60)
    gc.collect()
    with open("/proc/self/statm") as pages:
        return len(gc.get_objects()), int(pages.read().split()[1]) * 4096 // 1_000_000

cycle(15)
print(*cycle(5), *cycle(15))
"""


class FrozenServer(PostgreSQLServer):
    """A PostgreSQL server that stops replying but keeps its connections, like a machine whose disk hangs."""

    def stop(self) -> None:
        """Freeze all of the server's processes."""
        self._signal(signal.SIGSTOP)

    def start(self) -> None:
        """Let them continue."""
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        """Let them continue, and stop the server."""
        self.start()
        super().close()

    def _signal(self, number: signal.Signals) -> None:
        parent = (self._folder / "postmaster.pid").read_text().split()[0]
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        for process in (parent, *children):
            with suppress(ProcessLookupError):  # a worker that has ended in the meantime
                os.kill(int(process), number)


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stoppable]:
    """A migrated database that can be made unavailable."""
    if request.param == "postgresql":
        request.getfixturevalue("postgresql")  # skips the test if no server can run here
    opened: Stoppable = LockableFile(tmp_path) if request.param == "sqlite" else FrozenServer()
    store = TrackingStore(opened.url)
    store.migrate()
    store.close()
    yield opened
    opened.close()


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that accepts connections and never replies."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connections: list[socket.socket] = []

        def accept() -> None:
            with suppress(OSError):  # the socket is closed at the end of the test
                while True:
                    connections.append(server.accept()[0])

        thread = threading.Thread(target=accept)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        for connection in connections:
            connection.close()


def environment(judge: FakeJudge, **variables: str) -> dict[str, str]:
    """Return the environment of a process that uses this judge."""
    ours = {f"GERMANE_{name.upper()}": str(value) for name, value in judge.settings().items()}
    return {**os.environ, **ours, **variables}


@pytest.mark.slow
@pytest.mark.parametrize(("database", "dead"), CASES, indirect=["database"])
def test_stopping_germane_respects_its_timeout(
    database: Stoppable, judge: FakeJudge, silent_port: int, dead: tuple[str, ...], until: Callable[..., None]
) -> None:
    """Stopping returns in time even if the database, judge or collector is down, and True only if no work is lost."""
    variables = {"GERMANE_DATABASE": database.url}
    if "collector" in dead:
        variables["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{silent_port}"
    if "judge" in dead:
        judge.outage = Fault("hang")
    with subprocess.Popen(
        [sys.executable, "-c", STOP],
        env=environment(judge, **variables),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "ready\n"
        until(lambda: judge.requests)
        if "database" in dead:
            database.stop()
        process.stdin.write("\n")
        process.stdin.flush()
        seconds, is_clean = process.stdout.readline().split()
        database.start()
        process.kill()

    assert float(seconds) < TIMEOUT + 2.0  # a busy machine may delay the return
    assert is_clean == str(not dead)


@pytest.mark.slow
def test_repeated_starts_and_stops_leak_no_memory(judge: FakeJudge, tmp_path: Path) -> None:
    """After the first cycles, neither the number of objects nor the memory grows, even with proxy scores.

    The first alert would load modules in a later cycle.
    """
    completed = subprocess.run(
        [sys.executable, "-c", CYCLES],
        cwd=tmp_path,
        env=environment(judge, GERMANE_PROXY_CPU="0.1", GERMANE_RULES='[{"type": "drop", "enabled": false}]'),
        capture_output=True,
        text=True,
        check=True,
    )

    objects, megabytes, more_objects, more_megabytes = map(int, completed.stdout.split())
    assert more_objects < objects + 150  # fewer than ten per cycle
    assert more_megabytes < megabytes + 8
