"""``germane serve`` as a process, over real HTTP."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from click.testing import CliRunner
from tests.cli.conftest import an_exchange
from tests.conftest import migrated_file
from tests.dashboard.http_server import PAGE, TOKEN

from germane.cli.app import group
from germane.errors import GermaneError
from germane.storage import TrackingStore
from germane.testing import FakeJudge

pytestmark = pytest.mark.slow

LONG = 60
"""Timeout in seconds. On an idle machine, one or two seconds are enough."""


@dataclass
class ServeProcess:
    """A running ``germane serve``."""

    process: subprocess.Popen[str]
    address: str
    startup_output: str
    """The output on stderr until the URL was printed."""

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; return the exit code and the remaining output."""
        self.process.send_signal(number)
        return self.process.wait(LONG), self.startup_output + (
            self.process.stderr.read() if self.process.stderr else ""
        )


@pytest.fixture
def database(bare: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A migrated, empty SQLite file."""
    path = bare / "germane.db"
    path.write_bytes(migrated_file(tmp_path_factory.getbasetemp()).read_bytes())
    return f"sqlite:///{path}"


def start_serve(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Start ``germane serve``."""
    return subprocess.Popen(
        [sys.executable, "-m", "germane", "serve", *arguments], env={**os.environ, **environment},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # A shell's background job ignores Ctrl-C, and so do its child processes.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip


@contextmanager
def serving(*arguments: str, **environment: str) -> Iterator[ServeProcess]:
    """Serve on a free port until the block ends."""
    process = start_serve("--port", "0", *arguments, **environment)
    assert process.stderr is not None
    output, found = "", None
    try:
        while found is None and (line := process.stderr.readline()):
            output += line
            found = re.search(r"serving the dashboard on (http://\S+)", line)
        assert found is not None, output
        yield ServeProcess(process, found[1], output)
    finally:
        process.kill()
        process.communicate()


def failed_start(*arguments: str, **environment: str) -> tuple[int, str]:
    """Return the exit code and message of a failed start, run in this process."""
    ended = CliRunner().invoke(group, ["serve", *arguments], env=environment)
    return ended.exit_code, ended.output + (str(ended.exception) if isinstance(ended.exception, GermaneError) else "")


def test_serve_prints_its_url_and_stops_on_sigterm(database: str) -> None:
    """Pages are available once the URL is printed; after SIGTERM, the exit code is 0 and nothing more is printed."""
    with serving() as served:
        answer = httpx2.get(f"{served.address}/", headers=PAGE)
        head = httpx2.head(f"{served.address}/")
        ended = served.end()

    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", served.address)
    assert (answer.status_code, head.status_code, head.content) == (200, 200, b"")
    assert "First steps" in answer.text
    assert "server" not in answer.headers
    assert ended == (0, f"serving the dashboard on {served.address}\n")


def test_an_interrupt_exits_with_130_despite_open_connections(database: str) -> None:
    """An idle connection delays the exit by a few seconds at most."""
    with serving() as served:
        address = ("127.0.0.1", int(served.address.rpartition(":")[2]))
        with closing(socket.create_connection(address)) as open_, httpx2.Client() as client:
            open_.sendall(b"GET / HTTP/1.1\r\nHost:")
            assert client.get(f"{served.address}/healthz").text == "ok\n"
            assert served.end(signal.SIGINT)[0] == 130


def test_serving_on_a_remote_address_needs_a_token(database: str) -> None:
    """Without a token, the command exits with 2 and explains how to get one; with a token, it serves."""
    code, output = failed_start("--host", "0.0.0.0")
    assert code == 2
    assert all(way in output for way in ("GERMANE_DASHBOARD_TOKEN", "--token-file", "--generate-token"))
    assert failed_start("--host", "")[0] == 2

    with serving("--host", "0.0.0.0", GERMANE_DASHBOARD_TOKEN=TOKEN) as served:
        local = served.address.replace("0.0.0.0", "127.0.0.1")
        assert httpx2.get(f"{local}/metrics").status_code == 401
        assert httpx2.get(f"{local}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
        assert TOKEN not in served.end()[1]


def test_the_dashboard_token_is_read_from_a_file_or_generated(database: str, bare: Path) -> None:
    """A generated token is printed once; a token that is too short is rejected and not printed."""
    (bare / "token").write_text(f"{TOKEN}\n")
    with serving("--token-file", "token") as served:
        assert httpx2.get(served.address, headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    with serving("--generate-token") as served:
        made = served.startup_output.splitlines()[0].rpartition(" ")[2]
        assert len(made) == 32
        assert httpx2.get(served.address, headers={"Authorization": f"Bearer {made}"}).status_code == 200

    (bare / "token").write_text("hunter2")
    code, output = failed_start("--token-file", "token")
    assert (code, "16 ASCII characters" in output, "hunter2" in output) == (1, True, False)
    assert failed_start("--token-file", "token", "--generate-token")[0] == 2
    assert failed_start("--token-file", "nowhere")[0] == 2


def test_requests_for_allowed_host_names_are_accepted(database: str) -> None:
    """Names come from the command line or the settings; a URL is not a host name."""
    token = {"Authorization": f"Bearer {TOKEN}"}
    with serving(
        "--allowed-host", "one.example", GERMANE_DASHBOARD_TOKEN=TOKEN, GERMANE_ALLOWED_HOSTS="two.example"
    ) as served:
        asked = [
            httpx2.get(served.address, headers={**token, "Host": f"{name}.example"}) for name in ("one", "two", "no")
        ]
    assert [one.status_code for one in asked] == [200, 200, 403]

    assert failed_start("--allowed-host", "https://one.example")[0] == 2


def test_an_address_that_is_in_use_is_reported(database: str) -> None:
    """The exit code is 1, as for an address of another machine."""
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        code, output = failed_start("--port", str(port))

    assert code == 1
    free = "the port is in use. Choose another port, or 0 for any free port"
    assert output.strip() == f"cannot listen on 127.0.0.1 port {port}: {free}"


def test_an_unreachable_database_does_not_prevent_serving(bare: Path) -> None:
    """Pages report the problem, and work once the database is available."""
    with serving("--database", f"sqlite:///{bare}/nowhere/germane.db") as served:
        before = httpx2.get(f"{served.address}/", headers=PAGE)
        (bare / "nowhere").mkdir()
        with closing(TrackingStore(f"sqlite:///{bare}/nowhere/germane.db")) as store:
            store.migrate()
        after = httpx2.get(f"{served.address}/", headers=PAGE)
        assert served.end()[0] == 0

    assert (before.status_code, after.status_code) == (503, 200)


def test_the_log_of_the_server_contains_no_user_input(database: str) -> None:
    """Query strings, form fields and unknown paths are not logged."""
    with serving() as served:
        httpx2.get(f"{served.address}/answers?text=hunter2")
        httpx2.get(f"{served.address}/hunter2")
        httpx2.post(f"{served.address}/a/hunter2/feedback", data={"comment": "hunter2"})
        output = served.end()[1]

    assert "hunter2" not in output


def test_serving_with_the_read_only_option_rejects_every_form(database: str) -> None:
    """Forms from every client are rejected."""
    with serving("--read-only") as served:
        answer = httpx2.post(f"{served.address}/a/x/feedback", data={"score": "0"})

    assert answer.status_code == 403
    assert "read-only" in answer.text


def test_serving_with_the_worker_option_scores_answers(database: str) -> None:
    """With ``--with-worker``, captured exchanges are scored, and the worker stops with the server."""
    with FakeJudge() as judge, closing(TrackingStore(database)) as store:
        settings = {f"GERMANE_{name.upper()}": str(value) for name, value in judge.settings().items()}
        with serving("--with-worker", GERMANE_POLL_INTERVAL="0.1", **settings) as served:
            store.exchanges.add([an_exchange()])
            deadline = time.monotonic() + LONG
            while not store.answers.counts().scores and time.monotonic() < deadline:
                time.sleep(0.05)
            assert store.answers.counts().scores
            assert httpx2.get(f"{served.address}/", headers=PAGE).status_code == 200
            assert served.end()[0] == 0


def test_serving_with_the_worker_option_needs_a_judge(database: str) -> None:
    """``--with-worker`` without a judge is rejected, like ``germane worker``."""
    code, output = failed_start("--with-worker", "--port", "0", GERMANE_SCORERS="answer_relevancy")

    assert code == 1
    assert "serving" not in output
