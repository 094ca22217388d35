"""The quality benchmark from a folder of rows to the results page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from quality import main

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
    """Measure both halves and return the page."""
    page = folder.parent / "page.md"
    given = [str(folder), "--half", "both", "--cache", str(folder.parent / "kept.sqlite"), "--output", str(page), *more]
    assert main(given, FakeEmbedder()) == 0
    return page.read_text(encoding="utf-8")


def test_a_missing_data_folder_is_reported_without_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 0."""
    assert main([str(tmp_path / "none")]) == 0
    assert "skipped" in capsys.readouterr().out


@pytest.mark.slow
def test_the_quality_page_shows_results_and_no_row_text(folder: Path, judge: FakeJudge) -> None:
    """The method's line states the number of groups, the row texts are omitted, and the run is listed."""
    text = run(folder, "--judge-url", judge.base_url, "--runs", "1", "--scorer", "answer_relevancy")
    assert "| answer_relevancy | 10 | 20 / 20 | 1.00 [1.00, 1.00] |" in text
    assert "| cosine (MiniLM) | 10 | 20 / 20 | 1.00 [1.00, 1.00] |" in text
    assert "Trains leave" not in text
    assert "both half: answer_relevancy" in text
    assert "fake-judge" in text


@pytest.mark.slow
def test_rendering_the_quality_page_uses_only_cached_replies(folder: Path, judge: FakeJudge) -> None:
    """The page is the same when the judge is unreachable."""
    asked = run(folder, "--judge-url", judge.base_url, "--runs", "1", "--scorer", "answer_relevancy")
    count = len(judge.chat_requests)
    assert asked == run(folder, "--render", "--runs", "1")
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


def test_the_plan_of_a_run_is_printed_without_sending_requests(
    folder: Path, judge: FakeJudge, capsys: pytest.CaptureFixture[str]
) -> None:
    """The plan lists each step with its number of requests."""
    cache = str(folder.parent / "kept.sqlite")
    assert (
        main([str(folder), "--half", "both", "--cache", cache, "--judge-url", judge.base_url, "--plan"], FakeEmbedder())
        == 0
    )
    assert "20 rows   20 requests" in capsys.readouterr().out
    assert not judge.chat_requests


@pytest.mark.slow
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
