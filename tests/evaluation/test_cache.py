"""The score cache: an interrupted run keeps every score that was paid for."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import germane
from germane.errors import UsageError
from germane.evaluation.cache import ScoreCache
from germane.evaluation.scoring import CacheKey
from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.testing import FakeJudge, Fault

pytestmark = pytest.mark.usefixtures("bare")
ROWS = [{"question": f"How do I pay for item {number}?", "answer": f"Item {number} by card."} for number in range(12)]
WORK = CacheKey("numeric", "numeric-1", "c")
RUN = """
import json, sys, germane
rows, settings = json.loads(sys.argv[1]), json.loads(sys.argv[2])
evaluation = germane.evaluate(rows, cache="scores.db", **settings)
print(json.dumps([score.value for score in evaluation.scores]))
"""


@pytest.fixture
def judge() -> Iterator[FakeJudge]:
    """Return a judge that runs in this process and receives requests over HTTP."""
    with FakeJudge() as running:
        yield running


def asked(judge: FakeJudge) -> Counter[str]:
    """Return the number of requests per answer. The delimiters around answers are random."""
    return Counter(
        re.findall(r"Item \d+ by card", str(request.body["messages"]))[-1] for request in judge.chat_requests
    )


def run(judge: FakeJudge, rows: Any = ROWS, **options: Any) -> germane.Evaluation:
    """Score rows with a cache."""
    return germane.evaluate(rows, cache="scores.db", **judge.settings(), **options)


def test_a_second_run_with_a_cache_sends_no_requests(judge: FakeJudge) -> None:
    """The second run is free, and returns the same scores, including details and fingerprints."""
    judge.model = "fake-judge-2026"
    first, second = (germane.evaluate(ROWS, cache="scores.db", **judge.settings()) for _ in range(2))

    assert len(judge.chat_requests) == 2 * len(ROWS)
    assert second.scores == first.scores
    assert {score.judge for score in second.scores} == {"fake-judge-2026"}
    assert (first.tokens or 0) > 0
    assert (second.tokens, second.cost) == (None, None)


@pytest.mark.slow
def test_a_new_run_resumes_a_killed_run(judge: FakeJudge, until: Callable[..., None]) -> None:
    """After SIGKILL, the next run repeats no answered request, and returns the result of an uninterrupted run."""
    hanging = 3
    judge.faults.extend([*[None] * 5, *[Fault("hang")] * hanging])
    settings = {**judge.settings(), "concurrency": hanging, "scorers": ["direct_relevancy"]}
    arguments = [sys.executable, "-c", RUN, json.dumps(ROWS), json.dumps(settings)]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, env=dict(os.environ))
    until(lambda: len(judge.chat_requests) >= 5 + hanging and stored() >= 5)
    process.kill()
    assert process.communicate()[0] == b""
    before = asked(judge)
    kept = stored()
    judge.faults.clear()

    done = subprocess.run(arguments, stdout=subprocess.PIPE, env=dict(os.environ), check=True, timeout=60)

    again = asked(judge) - before
    assert kept == 5
    assert sum(again.values()) == len(ROWS) - kept
    assert sorted(asked(judge).values()) == [1] * (len(ROWS) - hanging) + [2] * hanging  # requests without a reply
    assert all(value is not None for value in json.loads(done.stdout))


def stored() -> int:
    """Return the number of scores in the file."""
    if not Path("scores.db").exists():
        return 0
    connection = sqlite3.connect("scores.db", timeout=10)
    try:
        count: int = connection.execute("SELECT count(*) FROM score").fetchone()[0]
    except sqlite3.OperationalError:  # the table does not exist yet
        return 0
    finally:
        connection.close()
    return count


@pytest.fixture
def until() -> Callable[..., None]:
    """Wait for a condition, with a deadline."""

    def wait(condition: Callable[[], bool]) -> None:
        deadline, pause = time.monotonic() + 40, threading.Event()
        while not condition():
            assert time.monotonic() < deadline
            pause.wait(0.02)

    return wait


def test_an_interrupted_run_keeps_the_scores_of_finished_rows(numeric: Any) -> None:
    """KeyboardInterrupt propagates, and the cache contains the finished rows."""

    class Interrupted(type(numeric)):  # type: ignore[misc]  # the fixture's class
        async def score(self, exchange: Exchange) -> Score | float:
            if exchange.answer == "stop":
                raise KeyboardInterrupt
            found: Score | float = await super().score(exchange)
            return found

    rows = [{"question": "How?", "answer": answer} for answer in ("0.1", "0.2", "stop", "0.3")]
    with pytest.raises(KeyboardInterrupt):
        germane.evaluate(rows, [Interrupted()], cache="scores.db", concurrency=1)

    evaluation = germane.evaluate(rows[:2], [numeric], cache="scores.db")
    assert [score.value for score in evaluation.scores] == [0.1, 0.2]
    assert numeric.seen == []


def test_failed_scores_are_not_cached(judge: FakeJudge) -> None:
    """A later run retries failed scores. Skipped scores are cached."""
    judge.outage = Fault("refusal")
    rows = [ROWS[0], {"question": "How?", "answer": ""}]
    first = run(judge, rows)
    judge.outage = None
    second = run(judge, rows)

    assert [score.reason for score in first.scores] == [UnscoredReason.JUDGE_REFUSED, UnscoredReason.MISSING_INPUT]
    assert [score.state for score in second.scores] == ["scored", "skipped"]


@pytest.mark.parametrize("cache", [None, "scores.db"])
def test_identical_rows_are_scored_once(judge: FakeJudge, cache: str | None) -> None:
    """With or without a cache, each row gets the score, and the cost counts once."""
    rows = [{**ROWS[0], "id": number, "label": number} for number in range(20)] + ROWS[1:3]
    once = germane.evaluate(ROWS[:3], **judge.settings())
    judge.requests.clear()

    evaluation = germane.evaluate(rows, cache=cache, concurrency=4, **judge.settings())

    assert len(judge.chat_requests) == 2 * 3
    assert len(evaluation.scores) == 22
    assert [row.exchange.id for row in evaluation.rows[:20]] == [str(number) for number in range(20)]
    assert evaluation.tokens == once.tokens


def test_user_defined_scorers_get_all_columns_of_a_row(numeric: Any) -> None:
    """Rows that differ only in a reference answer are scored separately."""

    class Matches(type(numeric)):  # type: ignore[misc]  # the fixture's class
        async def score(self, exchange: Exchange) -> Score | float:
            return float(exchange.answer == exchange.attributes["reference"])

    rows = [{"question": "How?", "answer": "a", "reference": reference} for reference in ("a", "b", "a")]

    assert [score.value for score in germane.evaluate(rows, [Matches()]).scores] == [1.0, 0.0, 1.0]


def test_cache_key_includes_the_configuration(judge: FakeJudge) -> None:
    """The cache key includes the scorer's fingerprint."""
    run(judge, ROWS[:1])
    run(judge, ROWS[:1], generated_questions=2)

    assert len(judge.chat_requests) == 2 * 2


@pytest.mark.parametrize(
    "change", [{"question": "Why?"}, {"answer": "By cash."}, {"contexts": ["one"]}, {"history": ["user: Hello"]}]
)
def test_cache_key_includes_all_inputs(judge: FakeJudge, change: dict[str, Any]) -> None:
    """A row is scored again if any of its inputs changes."""
    evaluation = run(judge, [ROWS[0], ROWS[0] | change])

    assert len(evaluation.rows) == 2
    assert stored() == 2


def test_scores_from_the_cache_are_unchanged() -> None:
    """Cached scores keep all fields, and the details that JSON can represent."""
    score = Score(
        scorer="numeric", fingerprint="served", value=0.5, label="partly_relevant", explanation="\u4ef7 \U0001f600",
        details={"list": [1, {"a": None}]}, judge="j", embedder="e", input_tokens=1, output_tokens=2, cost=0.5,
        latency=0.1, scored_at=datetime(2026, 1, 2, tzinfo=UTC),
    )  # fmt: skip
    with ScoreCache("scores.db") as cache:
        cache.save_score(WORK, score)
    with ScoreCache("scores.db") as cache:
        assert cache.find_score(WORK) == score
        assert cache.find_score(CacheKey("numeric", "numeric-2", "c")) is None


def test_score_details_in_the_cache_can_contain_any_object() -> None:
    """The cache stores the parts of the details that JSON can represent."""
    details = {
        "nan": float("nan"),
        "set": {1},
        "moment": datetime(2026, 1, 2, tzinfo=UTC),
        "odd": Fault("hang"),
        3: b"",
    }
    with ScoreCache("scores.db") as cache:
        cache.save_score(WORK, Score(scorer="numeric", fingerprint="f", value=1.0, details=details))
        found = cache.find_score(WORK)

    assert found is not None
    assert {name: found.details[name] for name in ("nan", "set", "3")} == {"nan": None, "set": [1], "3": ""}


def test_unreadable_cache_entries_are_ignored() -> None:
    """A row whose entry is unreadable is scored again."""
    with ScoreCache("scores.db") as cache:
        for spoilt in ("{", "[]", "{}", '{"scorer": "numeric"}'):
            cache._connection.execute("INSERT OR REPLACE INTO score VALUES ('numeric', 'numeric-1', 'c', ?)", (spoilt,))
            assert cache.find_score(WORK) is None


def test_a_cache_from_a_different_version_is_rejected() -> None:
    """The error contains the fix, and the file does not change."""
    ScoreCache("scores.db").close()
    connection = sqlite3.connect("scores.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()

    with pytest.raises(UsageError, match=r"scores.db was written by another version of germane .*99.*delete it, or"):
        ScoreCache("scores.db")


def test_a_database_of_another_program_is_rejected_and_not_changed() -> None:
    """This includes germane's own tracking database, passed by mistake."""
    connection = sqlite3.connect("other.db")
    connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    before = Path("other.db").read_bytes()

    with pytest.raises(UsageError, match=r"other\.db belongs to another program; use another file$"):
        ScoreCache("other.db")
    assert Path("other.db").read_bytes() == before


@pytest.mark.parametrize(
    ("path", "message"), [("rows.csv", "is not a score cache"), ("absent/a.db", "cannot be opened")]
)
def test_a_path_that_is_not_a_score_cache_is_rejected(path: str, message: str) -> None:
    """The error is raised before any request is sent."""
    Path("rows.csv").write_text("question,answer\n" * 100)

    with pytest.raises(UsageError, match=f"the cache {path} {message}"):
        ScoreCache(path)


def test_an_unwritable_cache_causes_one_warning(numeric: Any, caplog: pytest.LogCaptureFixture) -> None:
    """The run still returns its scores."""
    cache = ScoreCache("scores.db")
    cache._connection.execute("DROP TABLE score")
    for number in range(3):
        cache.save_score(
            CacheKey("numeric", "numeric-1", str(number)), Score(scorer="numeric", fingerprint="f", value=1.0)
        )
    cache.close()

    (message,) = caplog.messages
    assert message.startswith("cannot write to the cache scores.db")


def test_several_processes_can_create_a_cache_concurrently() -> None:
    """One process creates the table, and no score is lost."""

    def save_score(number: int) -> None:
        gate.wait()
        with ScoreCache("scores.db") as cache:
            cache.save_score(
                CacheKey("numeric", "numeric-1", str(number)), Score(scorer="numeric", fingerprint="f", value=1.0)
            )

    for _ in range(10):
        gate = threading.Barrier(6)
        with ThreadPoolExecutor(6) as threads:
            list(threads.map(save_score, range(6)))
        assert stored() == 6
        Path("scores.db").unlink()


def test_two_runs_can_share_a_cache(numeric: Any) -> None:
    """Each run finds the other's scores."""
    with ScoreCache("scores.db") as one, ScoreCache("scores.db") as other:
        one.save_score(WORK, Score(scorer="numeric", fingerprint="f", value=0.25))
        found = other.find_score(WORK)

    assert found is not None
    assert found.value == 0.25


def test_rows_are_scored_with_limited_concurrency(numeric: Any) -> None:
    """Thousands of rows do not create thousands of concurrent tasks."""
    most = 0

    class Counting(type(numeric)):  # type: ignore[misc]  # the fixture's class
        async def score(self, exchange: Exchange) -> Score | float:
            nonlocal most
            most = max(most, len(asyncio.all_tasks()))
            await asyncio.sleep(0)
            return 0.5

    rows = [{"question": "How?", "answer": str(number)} for number in range(2_000)]
    germane.evaluate(rows, [Counting()], concurrency=4)

    assert most < 30
