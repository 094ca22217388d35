"""The documented ways to store external scores work on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.docs.blocks import Block, of
from tests.docs.test_documents import module

import germane
from germane.cli.app import group
from germane.storage import TrackingStore
from germane.testing import FakeJudge


def block(page: str, language: str, text: str) -> Block:
    """Return the block on a page that contains a text."""
    (found,) = (block for block in of(language) if block.page.name == page and text in block.text)
    return found


@pytest.fixture
def stored(migrated_url: str) -> Callable[[], dict[tuple[str | None, str], float | None]]:
    """A function that returns all scores by question and scorer. All have the fingerprint for external scores."""

    def read() -> dict[tuple[str | None, str], float | None]:
        with closing(TrackingStore(migrated_url)) as store:
            exchanges = {exchange.id: exchange for exchange in store.answers.list_exchanges()}
            scores = store.answers.get_scores(list(exchanges))
        assert {score.fingerprint for found in scores.values() for score in found} == {"external"}
        return {
            (exchanges[id_].question, score.scorer): score.value for id_, found in scores.items() for score in found
        }

    return read


def test_the_documented_call_stores_the_exchange_and_its_scores(
    bare: Path, migrated_url: str, stored: Callable[[], dict[tuple[str | None, str], float | None]]
) -> None:
    """The judge is not asked for a score that was passed to ``record_exchange``, as on the feedback page."""
    with FakeJudge() as judge:
        settings = judge.settings() | {"scorers": ["answer_relevancy", "faithfulness"]}
        germane.start(**settings, database=migrated_url, poll_interval=0.05)
        recorded = module(block("feedback.md", "python", "record_exchange").text, bare / "recorded.py")
        assert germane.stop(60, drain_timeout=60)
        assert judge.chat_requests == []

    question = "How long can I return shoes?"
    assert recorded.exchange_id
    recorded_scores = {"answer_relevancy": 0.8, "faithfulness": 1.0, "tone": 0.4}
    combined = {"answer_quality": pytest.approx((0.3 * 0.8 + 0.4 * 1.0) / 0.7)}
    assert stored() == {(question, name): value for name, value in (recorded_scores | combined).items()}


def test_the_documented_file_is_imported_with_its_scores(
    bare: Path, migrated_url: str, stored: Callable[[], dict[tuple[str | None, str], float | None]]
) -> None:
    """``germane import`` prints the output that the fleet page shows."""
    Path("rated.jsonl").write_text(block("fleet.md", "json", "answer_relevancy").text, encoding="utf-8")
    shown = block("fleet.md", "console", "rated.jsonl").text.strip().splitlines()

    result = CliRunner().invoke(group, ["import", "rated.jsonl", "--database", migrated_url])

    assert (shown[0], result.output.strip()) == ("$ germane import rated.jsonl", shown[1])
    assert stored() == {
        ("How do I pay?", "answer_relevancy"): 0.8,
        ("Where are you?", "faithfulness"): 1.0,
        ("Where are you?", "tone"): 0.4,
    }
