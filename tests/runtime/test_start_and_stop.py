"""Starting and stopping germane in one process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import germane
from germane.errors import SettingsError, UsageError
from germane.monitor import Alert
from germane.testing import FakeJudge, Fault

Query = Callable[[str], list[Any]]
Monitors = Callable[[], list[str]]


@germane.observe
def ask(question: str) -> str:
    """Answer immediately."""
    return "By card, in the shop."


def ask_all(count: int) -> None:
    """Ask several different questions."""
    for number in range(count):
        assert ask(f"How do I pay {number}?") == "By card, in the shop."


@pytest.fixture
def monitors() -> Callable[[], list[str]]:
    """Return the names of background threads that were started during the test."""
    before = set(threading.enumerate())
    return lambda: [one.name for one in set(threading.enumerate()) - before if one.name == "germane-monitor"]


def test_stopping_germane_writes_captured_exchanges(judge: FakeJudge, database: str, query: Query) -> None:
    """No data is left in memory, and no thread keeps running."""
    before = set(threading.enumerate())
    germane.start(**judge.settings(), database=database)
    ask_all(50)
    assert {"germane-writer", "germane-monitor"} <= {thread.name for thread in set(threading.enumerate()) - before}

    assert germane.stop(60)

    assert query("SELECT count(*) FROM exchange") == [50]
    ours = set(threading.enumerate()) - before
    assert [thread.name for thread in ours if thread.name.startswith("germane")] == []


def test_stopping_with_a_drain_timeout_waits_for_scores(judge: FakeJudge, database: str, query: Query) -> None:
    """A script gets all scores before it exits."""
    germane.start(**judge.settings(), database=database, poll_interval=0.05)
    ask_all(20)

    assert germane.stop(drain_timeout=60)

    assert query("SELECT count(*) FROM score") == [20]
    assert judge.chat_requests  # identical answers may share a request


def test_stopping_germane_without_a_start_is_not_an_error() -> None:
    """`stop` may be called twice."""
    assert germane.stop()
    assert germane.stop()


def test_a_second_start_replaces_the_first_runtime(judge: FakeJudge, tmp_path: Path, monitors: Monitors) -> None:
    """Earlier exchanges are written to the earlier database. Later ones use the new settings."""
    for name in ("one", "two"):
        germane.start(**judge.settings(), database=f"sqlite:///{tmp_path / name}.db", service=name)
        ask_all(3)
    assert monitors() == ["germane-monitor"]
    assert germane.stop(60)

    for name in ("one", "two"):
        store = germane.Store(f"sqlite:///{tmp_path / name}.db")
        assert [exchange.service for exchange in store.answers.list_exchanges()] == [name] * 3
        store.close()


def test_objects_from_the_first_start_are_exempt_from_garbage_collection(bare: Path) -> None:
    """They are exempted once per process, so a full collection in the application visits few of germane's objects."""
    program = """
import gc, germane
germane.start(role="capture")
frozen = gc.get_freeze_count()
germane.start(role="capture")
print(frozen > 0.9 * (frozen + len(gc.get_objects())), gc.get_freeze_count() <= frozen)
germane.stop()
"""
    ended = subprocess.run([sys.executable, "-c", program], cwd=bare, capture_output=True, text=True, check=True)

    assert ended.stdout.split() == ["True", "True"], ended.stderr


def test_concurrent_starts_and_stops_are_serialized(
    judge: FakeJudge, database: str, query: Query, monitors: Monitors
) -> None:
    """Only one runtime runs at a time, and its captured exchanges are written."""
    seen = []

    def restart() -> None:
        for _ in range(3):
            germane.start(**judge.settings(), database=database)
            seen.append(len(monitors()))
            germane.stop()

    threads = [threading.Thread(target=restart) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert max(seen) == 1

    germane.start(**judge.settings(), database=database)
    ask_all(2)
    assert germane.stop(60)
    assert monitors() == []
    assert query("SELECT count(*) FROM exchange") == [2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong",
    [
        {"sample_rate": 3},
        {"scorers": ["no_such_scorer"]},
        {"rules": [{"threshold": 0.5}, {"threshold": 0.6}]},
        {"database": "sqlite+other:///x"},
        {"judge": "local", "embedder": "at-a-server"},
    ],
)
def test_invalid_settings_do_not_affect_the_running_runtime(
    judge: FakeJudge, database: str, query: Query, wrong: dict[str, Any]
) -> None:
    """The second start raises an error, and the first runtime continues."""
    germane.start(**judge.settings(), database=database)
    with pytest.raises(SettingsError):
        germane.start(**wrong)
    ask_all(1)

    assert germane.stop(60)
    assert query("SELECT count(*) FROM exchange") == [1]


@pytest.mark.parametrize("name", ["redact", "on_alert"])
def test_start_rejects_an_option_that_must_be_callable(name: str) -> None:
    """The error is not delayed until the first alert fires."""
    with pytest.raises(UsageError, match=f"^{name} must be a function, not 3$"):
        germane.start(**{name: 3})


def test_the_lifespan_starts_and_stops_germane_with_the_application(
    judge: FakeJudge, database: str, query: Query, monitors: Monitors
) -> None:
    """Handlers are captured during the lifespan. At its end, everything is written."""

    async def live() -> None:
        async with germane.lifespan(object(), **judge.settings(), database=database):
            ask_all(2)
            assert monitors() == ["germane-monitor"]

    asyncio.run(live())

    assert monitors() == []
    assert query("SELECT count(*) FROM exchange") == [2]


def test_a_running_handler_completes_after_a_stop(
    judge: FakeJudge, database: str, warnings: Callable[[], list[str]]
) -> None:
    """The handler's result is unchanged. Later calls are not captured, and no warning is logged."""
    begun, go_on, answers = threading.Event(), threading.Event(), []

    @germane.observe
    def slow(question: str) -> str:
        begun.set()
        assert go_on.wait(60)
        return "Late."

    germane.start(**judge.settings(), database=database)
    thread = threading.Thread(target=lambda: answers.append(slow("When?")))
    thread.start()
    assert begun.wait(60)
    assert germane.stop(60)
    go_on.set()
    thread.join()

    assert answers == ["Late."]
    assert ask("How do I pay?") == "By card, in the shop."
    assert [line for line in warnings() if "germane is not running" not in line] == []


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_alerts_reach_the_configured_callback(judge: FakeJudge, database: str, kind: str) -> None:
    """`on_alert` may be a function or a coroutine function."""
    judge.questions = lambda answer: ["Is the moon made of cheese?"]
    alerts: list[Alert] = []
    notified = threading.Event()

    def tell(alert: Alert) -> None:
        alerts.append(alert)
        notified.set()

    async def tell_later(alert: Alert) -> None:
        await asyncio.sleep(0)
        tell(alert)

    germane.start(
        **judge.settings(),
        database=database,
        poll_interval=0.05,
        on_alert=tell if kind == "sync" else tell_later,
        rules=[{"threshold": 0.9, "min_samples": 5, "window": 60}],
    )
    ask_all(8)

    assert notified.wait(60)
    assert alerts[0].current is not None
    assert (alerts[0].state, alerts[0].route, alerts[0].current.n >= 5) == ("firing", "ask", True)


def test_texts_are_redacted_before_they_are_stored_or_scored(judge: FakeJudge, database: str, query: Query) -> None:
    """The database and the judge only receive the redacted text."""
    germane.start(
        **judge.settings(),
        database=database,
        poll_interval=0.05,
        redact=lambda text: text.replace("card", "[redacted]"),
    )
    ask("How do I pay by card?")

    assert germane.stop(drain_timeout=60)
    assert query("SELECT question, answer FROM exchange") == [
        ("How do I pay by [redacted]?", "By [redacted], in the shop.")
    ]
    assert "card" not in str(judge.requests)


def test_an_error_in_redaction_drops_the_text(judge: FakeJudge, database: str, query: Query) -> None:
    """Dropping the text is safer than storing it unredacted."""

    def fail_to_redact(text: str) -> str:
        raise ZeroDivisionError

    germane.start(**judge.settings(), database=database, redact=fail_to_redact)
    ask("How do I pay by card?")

    assert germane.stop(60)
    assert query("SELECT question, answer FROM exchange") == [(None, None)]


def test_no_text_is_stored_if_the_capture_setting_is_none(judge: FakeJudge, database: str, query: Query) -> None:
    """The exchange is counted, but its text is not stored anywhere."""
    germane.start(**judge.settings(), database=database, capture="none", poll_interval=0.05)
    ask("How do I pay by card?")

    assert germane.stop(drain_timeout=60)
    assert query("SELECT question, answer FROM exchange") == [(None, None)]
    assert judge.requests == []


def test_an_observed_judge_client_creates_no_exchange(
    judge: FakeJudge, database: str, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds even if every request by the client is observed."""
    from germane.scorers.judge.openai_client import OpenAIClient

    seen = []

    async def post(self: Any, path: str, *, body: Any, **options: Any) -> Any:
        if path == "/chat/completions":
            seen.append(ask(str(body["messages"])))
        return await original(self, path, body=body, **options)

    original = OpenAIClient.post
    monkeypatch.setattr(OpenAIClient, "post", germane.observe(question="path")(post))
    germane.start(**judge.settings(), database=database, poll_interval=0.05)
    ask_all(3)

    assert germane.stop(drain_timeout=60)
    assert 2 <= len(seen) <= 6  # two requests per exchange; identical answers may share them
    assert query("SELECT count(*) FROM exchange") == [3]
    assert query("SELECT count(*) FROM score") == [3]


def test_no_handler_waits_for_its_score(judge: FakeJudge, database: str, query: Query, until: Any) -> None:
    """All handlers return before the judge replies."""
    judge.latency = 3600.0
    germane.start(**judge.settings(), database=database, poll_interval=0.05, judge_timeout=1800.0)
    ask_all(1)
    until(lambda: judge.chat_requests)

    ask_all(150)

    assert query("SELECT count(*) FROM score") == [0]
    judge.close()
    germane.stop(timeout=5)
    assert query("SELECT count(*) FROM exchange") == [151]


@pytest.mark.slow
def test_libraries_do_not_log_judge_requests_or_migrations(
    judge: FakeJudge, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    """At level INFO, the application's log has no lines about judge requests or migrations, and keeps its own lines."""
    import httpx2

    caplog.set_level("DEBUG", logger="httpx2")
    caplog.set_level("DEBUG", logger="openai")
    caplog.set_level("INFO")
    judge.faults.extend([Fault("status", status=500)] * 2)
    germane.start(**judge.settings(), database=database, poll_interval=0.05)
    ask_all(5)
    assert germane.stop(drain_timeout=60)
    germane.evaluate([{"question": "How do I pay?", "answer": "By card."}], **judge.settings())

    assert [record.getMessage() for record in caplog.records if not record.name.startswith("germane")] == []
    httpx2.get(f"{judge.base_url}/models")
    assert "httpx2" in {record.name for record in caplog.records}
