"""The quality benchmark from a folder of rows to the tables, and its cache of judge replies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from labelled.scoring import Cache, CachingJudge, counted, key_of
from quality import main

from germane.errors import ScoringError
from germane.exchange import Message
from germane.score import UnscoredReason
from germane.scorers import Reply
from germane.scorers.base.protocols import Token
from germane.testing import FakeEmbedder, FakeJudge

pytestmark = pytest.mark.usefixtures("bare")
TOPICS = ("a kettle", "a ladder", "a tent", "a drum", "a lamp", "a rope", "a canoe", "a stove", "a clock", "a hammer")


@pytest.fixture
def judge() -> Iterator[FakeJudge]:
    """A judge that runs in this process."""
    with FakeJudge() as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with rows: for each question, an answer to it and an answer to a different question."""
    rows = []
    for thing in TOPICS:
        for label, answer in ((1.0, f"You buy {thing} in the shop by the bridge."), (0.0, "Trains leave at noon.")):
            rows.append(
                {
                    "id": f"{thing}-{label}", "question": f"Where do I buy {thing}?", "answer": answer, "contexts": [],
                    "label": label, "kind": "k", "source": "SelQA/test", "group": f"selqa-{thing}",
                    "label_origin": "construction", "meta": {},
                }
            )  # fmt: skip
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "relevancy.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return tmp_path / "rows"


def run(folder: Path, *more: str) -> str:
    """Measure both halves and return the tables."""
    page = folder.parent / "page.md"
    given = [str(folder), "--half", "both", "--cache", str(folder.parent / "kept.sqlite"), "--output", str(page), *more]
    assert main(given, FakeEmbedder()) == 0
    return page.read_text(encoding="utf-8")


def test_a_missing_data_folder_is_reported_without_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 0."""
    assert main([str(tmp_path / "none")]) == 0
    assert "skipped" in capsys.readouterr().out


@pytest.mark.slow
def test_the_tables_show_results_and_no_row_text(folder: Path, judge: FakeJudge) -> None:
    """The method's line states the number of groups, and the row texts are omitted."""
    text = run(folder, "--judge-url", judge.base_url, "--runs", "1", "--scorer", "answer_relevancy")
    assert "| answer_relevancy | 10 | 20 / 20 | 1.00 [1.00, 1.00] |" in text
    assert "| cosine (MiniLM) | 10 | 20 / 20 | 1.00 [1.00, 1.00] |" in text
    assert "Trains leave" not in text
    assert "fake-judge" in text


@pytest.mark.slow
def test_the_tables_can_be_printed_again_from_cached_replies(folder: Path, judge: FakeJudge) -> None:
    """The tables are the same without a judge."""
    asked = run(folder, "--judge-url", judge.base_url, "--runs", "1", "--scorer", "answer_relevancy")
    count = len(judge.chat_requests)
    assert asked == run(folder, "--runs", "1", "--scorer", "answer_relevancy")
    assert count == len(judge.chat_requests) > 0


@pytest.mark.slow
def test_an_interrupted_quality_run_resumes_without_repeating_requests(folder: Path, judge: FakeJudge) -> None:
    """No request of the first run is repeated."""
    given = ("--judge-url", judge.base_url, "--runs", "1", "--scorer", "answer_relevancy")
    run(folder, *given, "--sample", "4")
    first = len(judge.chat_requests)
    run(folder, *given)
    seen = [json.dumps(request.body["messages"]) for request in judge.chat_requests]
    assert first < len(seen) == len(set(seen))


@pytest.mark.slow
def test_results_of_a_peer_library_are_listed_next_to_those_of_germane(folder: Path, judge: FakeJudge) -> None:
    """A score that the peer could not compute counts as missing."""
    scores = folder.parent / "peer.jsonl"
    lines = [{"id": f"{thing}-{label}", "score": label} for thing in TOPICS for label in (1.0, 0.0)]
    lines[0]["score"] = None  # a row that failed
    scores.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    given = ("--judge-url", judge.base_url, "--runs", "1", "--scorer", "answer_relevancy")
    text = run(folder, *given, "--peer", f"A peer={scores}")
    assert "| A peer | 10 | 19 / 20 | 1.00 [1.00, 1.00]; missing as 0.5: 0.95 |" in text
    assert "| SelQA | 10 | answer_relevancy | 1.00 | A peer | 1.00 |" in text


def test_stored_scores_of_another_library_are_shown(folder: Path) -> None:
    """Faithfulness rows contain the Ragas score, if there is one."""
    rows = [
        {
            "id": f"f{n}-{label}", "question": f"Where is {thing}?", "answer": "In the shop.", "contexts": ["A shop."],
            "label": label, "kind": "k", "source": "MTRAG", "group": f"mtrag-f-{n}<::>1",
            "meta": {"ragas_faithfulness_rl_f": label if n else None},
        }
        for n, thing in enumerate(TOPICS) for label in (1.0, 0.0)
    ]  # fmt: skip
    (folder / "faithfulness.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    text = run(folder)
    assert "| Ragas, published with the rows (another judge) | 10 | 18 / 20 | 1.00 [1.00, 1.00]" in text


HELLO = [Message("user", "Hello")]


class Judge:
    """A judge that counts its requests and fails on demand."""

    model = "small"

    def __init__(self) -> None:
        self.asked = 0
        self.error: ScoringError | None = None

    async def identify(self) -> str:
        """Return the judge's name."""
        return "small-1"

    async def ask(self, messages: Sequence[Message], **options: Any) -> Reply:
        """Reply with the number of the request."""
        self.asked += 1
        await asyncio.sleep(0)
        if self.error:
            raise self.error
        return Reply((str(self.asked),), 7, 1, "small-1", first_token={"1": 0.5}, tokens=(Token("1", {"1": 0.5}),))


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Cache]:
    """Return an empty cache file."""
    file = Cache(tmp_path / "deep" / "replies.sqlite")
    yield file
    file.close()


def test_a_cached_request_is_not_sent_again(cache: Cache) -> None:
    """The second call returns the same reply and usage, even without a judge."""
    judge = Judge()

    async def twice() -> tuple[Reply, Reply]:
        first = await CachingJudge(cache, "small", judge).ask(HELLO, top_tokens=5)
        with counted() as usage:
            second = await CachingJudge(cache, "small", None).ask(HELLO, top_tokens=5)
        assert (usage.requests, usage.input_tokens, usage.output_tokens) == (1, 7, 1)
        assert await CachingJudge(cache, "small", None).identify() == "small-1"
        return first, second

    first, second = asyncio.run(twice())
    assert first == second
    assert judge.asked == 1


def test_identical_concurrent_requests_are_sent_once(cache: Cache) -> None:
    """Two scorers with the same request share the reply, and both count its usage."""
    judge = Judge()

    async def both() -> list[Reply]:
        shared = CachingJudge(cache, "small", judge)
        return list(await asyncio.gather(shared.ask(HELLO), shared.ask(HELLO)))

    first, second = asyncio.run(both())
    assert first == second
    assert judge.asked == 1


def test_the_random_delimiter_is_not_part_of_the_cache_key() -> None:
    """The delimiter differs between processes; the text inside it does not."""

    def key(fence: str, text: str = "Two miles.") -> str:
        return key_of([Message("user", f"<answer-{fence}>\n{text}\n</answer-{fence}>")], {}, model="m", run=0)

    assert key("0123abcd") == key("fedc9876")
    assert key("0123abcd") != key("0123abcd", "Three miles.")


def test_benchmark_runs_share_cached_replies_at_temperature_zero() -> None:
    """At temperature 0, the second run reuses the replies of the first run."""

    def key(run: int, temperature: float) -> str:
        return key_of(HELLO, {"temperature": temperature}, model="m", run=run)

    assert key(0, 0.0) == key(1, 0.0)
    assert key(0, 0.7) != key(1, 0.7)


def test_an_unsent_request_is_reported_and_not_cached(cache: Cache) -> None:
    """Without a judge, a row's score is missing, not failed."""
    judge = Judge()
    with counted() as usage, pytest.raises(ScoringError, match="not asked yet"):
        asyncio.run(CachingJudge(cache, "small", None).ask(HELLO))

    assert usage.is_missing
    asyncio.run(CachingJudge(cache, "small", judge).ask(HELLO))
    assert judge.asked == 1


def test_only_permanent_judge_failures_are_cached(cache: Cache) -> None:
    """A permanent failure is reused. A temporary failure is retried."""
    judge = Judge()

    def ask(reason: UnscoredReason, text: str) -> bool:
        judge.error = ScoringError(reason, "as told")
        with counted() as usage, pytest.raises(ScoringError, match="as told"):
            asyncio.run(CachingJudge(cache, "small", judge).ask([Message("user", text)]))
        return usage.is_missing

    assert [ask(UnscoredReason.JUDGE_REFUSED, "a") for _ in range(2)] == [False, False]
    assert judge.asked == 1
    assert [ask(UnscoredReason.JUDGE_TIMEOUT, "b") for _ in range(2)] == [True, True]
    assert judge.asked == 3
