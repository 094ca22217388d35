"""germane behind pgbouncer in transaction mode: several processes capture, score and query with few connections."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from germane.storage import TrackingStore

EXCHANGES, CAPTURES, WORKERS = 3000, 3, 2
SERVER_CONNECTIONS = 3
"""Fewer than processes, so that each transaction may get another connection."""
TIMEOUT = 240.0
PGBOUNCER = shutil.which("pgbouncer", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"]))

APPLICATION = """
import logging, sys
import germane

logging.basicConfig(level=logging.WARNING)

@germane.scorer(requires={"answer"})
def brevity(exchange: germane.Exchange) -> float:
    return min(1.0, 20 / len(exchange.answer.split()))

@germane.observe(route=f"route-{sys.argv[-1]}")
def ask(question: str) -> str:
    return f"The answer to {question}"

if __name__ == "__main__":
    germane.start(role="capture")
    for number in range(int(sys.argv[1])):
        ask(f"question {number}")
    assert germane.stop(timeout=120)
"""


@pytest.fixture
def pooler(postgresql: Any, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """A function that returns the URL of a database through pgbouncer in transaction mode."""
    if PGBOUNCER is None:
        pytest.skip("pgbouncer is not on PATH: apt-get install pgbouncer")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {
        "listen_addr": "127.0.0.1",
        "listen_port": port,
        "unix_socket_dir": "",
        "auth_type": "trust",
        "auth_file": tmp_path / "users.txt",
        "pool_mode": "transaction",
        "default_pool_size": SERVER_CONNECTIONS,
        "server_reset_query": "",
    }
    (tmp_path / "users.txt").write_text('"postgres" ""\n')
    lines = ["[databases]", f"* = host={postgresql.directory}", "[pgbouncer]"]
    configuration = tmp_path / "pgbouncer.ini"
    configuration.write_text("\n".join([*lines, *(f"{name} = {value}" for name, value in settings.items())]))
    command = [PGBOUNCER]
    if os.geteuid() == 0:  # pgbouncer refuses to run as root
        command += ["-u", postgresql.directory.owner()]
        for path in (tmp_path, *tmp_path.parents[:2]):
            path.chmod(0o755)
    with (tmp_path / "pgbouncer.log").open("w") as log:
        process = subprocess.Popen([*command, str(configuration)], stdout=log, stderr=subprocess.STDOUT)
    try:
        _wait_for_port(port, process)
        yield lambda name: f"postgres://postgres@127.0.0.1:{port}/{name}"
    finally:
        process.kill()
        process.wait()


def _wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    waiting = threading.Event()
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            waiting.wait(0.05)
        else:
            return
    raise RuntimeError("pgbouncer has stopped")


def test_several_processes_share_pooled_connections_without_errors(
    pooler: Callable[[str], str], postgresql: Any, bare: Path
) -> None:
    """No exchange is lost, each exchange is scored once, and no process or server logs a warning or an error."""
    url = pooler(postgresql.create())
    (bare / "application.py").write_text(APPLICATION)
    environment = os.environ | {
        "GERMANE_DATABASE": url,
        "GERMANE_SCORERS": "brevity",
        "GERMANE_IMPORTS": "application",
        "GERMANE_POLL_INTERVAL": "0.2",
        "GERMANE_MAX_EXCHANGES_PER_MINUTE": "1000000",
        "PYTHONPATH": os.pathsep.join([str(bare), *sys.path]),
    }
    processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (bare / f"{name}.out").open("wb") as out, (bare / f"{name}.log").open("wb") as log:
            processes[name] = subprocess.Popen([sys.executable, *arguments], stdout=out, stderr=log, env=environment)
        return processes[name]

    def run(name: str, *arguments: str) -> str:
        assert start(name, *arguments).wait(TIMEOUT) == 0, (bare / f"{name}.log").read_text()
        return (bare / f"{name}.out").read_text()

    run("upgrade", "-m", "germane", "db", "upgrade")
    try:
        captures = [
            start(f"capture-{n}", "application.py", f"{EXCHANGES // CAPTURES}", f"{n}") for n in range(CAPTURES)
        ]
        workers = [start(f"worker-{number}", "-m", "germane", "worker") for number in range(WORKERS)]
        for name in ("report", "worst", "trend"):
            run(f"{name}-during", "-m", "germane", name, "--json")
        assert [capture.wait(TIMEOUT) for capture in captures] == [0] * CAPTURES
        run("drain", "-m", "germane", "worker", "--drain")
        for worker in workers:
            worker.send_signal(signal.SIGTERM)
        assert [worker.wait(TIMEOUT) for worker in workers] == [0] * WORKERS
        check = json.loads(run("check", "-m", "germane", "db", "check", "--json"))
        exported = run("export", "-m", "germane", "export", "-", "--format", "csv")
        run("prune", "-m", "germane", "prune", "--older-than", "0s")
    finally:
        for process in processes.values():
            process.kill()
            process.wait()

    assert exported.count("\n") == EXCHANGES + 1
    assert {finding["level"] for finding in check["findings"]} == {"ok"}
    store = TrackingStore(url)
    assert store.answers.counts().captured == 0
    store.close()
    for name in processes:
        log = (bare / f"{name}.log").read_text()
        problems = [line for line in log.splitlines() if not line.startswith(("germane worker: scorers", "worker"))]
        assert not problems, f"{name}: {log}"
    pooler_log = (bare / "pgbouncer.log").read_text()
    assert not [line for line in pooler_log.splitlines() if " ERROR " in line or " WARNING " in line], pooler_log
