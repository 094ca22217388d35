"""Tests of `germane worst`."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.cli.conftest import an_exchange

from germane.annotation import RecordedScore
from germane.cli.commands.worst import describe_answer
from germane.storage import TrackingStore

Call = Callable[..., Any]
Scored = Callable[..., Any]
HOSTILE = [
    "\x1b[31mred\x1b]0;title\x07\x9b2J",
    "safe \u202e\u2066 reversed",
    "first\nsecond\r\nthird\x0b\x0cfourth\u2028fifth\x85",
    "x" * 100_000,
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea \u2764\ufe0f",
    "\x00\x08\x7f\ufeff\u200b",
    "<script>alert(1)</script> [link](http://example.com) `rm -rf`",
    "\u0627\u0644\u0633\u0639\u0631",
]


def test_the_lowest_answers_come_first_with_their_generated_questions(
    call: Call, store: TrackingStore, scored: Scored
) -> None:
    """The output shows the answer, its score and the questions that the judge generated."""
    scored(store, [0.9, 0.1, 0.5])
    reads_as = {"questions": [{"text": "What colour?", "similarity": 0.05}, {"text": "unused", "similarity": None}]}
    scored(store, [0.05], details=reads_as, question="How do I pay?", answer="It is blue.")

    lines = call("worst", "-n", "2").out.splitlines()

    assert lines[0].startswith(" 0.05  irrelevant  ask  ")
    assert lines[1:4] == [
        "       question  How do I pay?",
        "       answer    It is blue.",
        "       generated What colour?  (0.05)",
    ]
    assert lines[4].startswith("       scorer    answer_relevancy, exchange ")
    assert lines[6].startswith(" 0.10  irrelevant  ask  ")
    assert len(lines) == 11


def test_a_calibrated_label_is_shown_with_the_calibrated_value(
    call: Call, store: TrackingStore, scored: Scored
) -> None:
    """Otherwise, equal values with different labels would be confusing."""
    scored(store, [0.62], details={"calibrated": 0.51})

    assert call("worst").out.startswith(" 0.62  partly_relevant (calibrated 0.51)  ask  ")


def test_a_value_that_rounds_to_zero_has_no_sign(call: Call, store: TrackingStore, scored: Scored) -> None:
    """Similarities of unrelated texts are often slightly negative."""
    scored(store, [-0.001], details={"questions": [{"text": "What colour?", "similarity": -0.002}], "calibrated": -0.0})

    lines = call("worst").out.splitlines()

    assert lines[0].startswith(" 0.00  irrelevant (calibrated 0.00)  ask  ")
    assert lines[3] == "       generated What colour?  (0.00)"


def test_erased_text_is_marked_as_erased(call: Call, store: TrackingStore, scored: Scored) -> None:
    """The score stays in the list."""
    scored(store, [0.1], details={"questions": [{"text": "What colour?", "similarity": 0.05}]})
    store.retention.prune(texts_before=datetime.now(UTC) + timedelta(minutes=1))

    out = call("worst").out

    assert out.count("(erased or not stored)") == 3
    assert "None" not in out


def test_worst_answers_in_json_contain_the_complete_text(call: Call, store: TrackingStore, scored: Scored) -> None:
    """Nothing is truncated or replaced."""
    (exchange,) = scored(store, [0.1], question=HOSTILE[1], answer=HOSTILE[3], details={"questions": []})

    (answer,) = call("worst", "--json").content["answers"]

    assert (answer["exchange_id"], answer["trace_id"]) == (exchange.id, exchange.trace_id)
    assert (answer["question"], answer["answer"]) == (HOSTILE[1], HOSTILE[3])
    assert (answer["value"], answer["label"], answer["scorer"]) == (0.1, "irrelevant", "answer_relevancy")
    assert datetime.fromisoformat(answer["started_at"]) == exchange.started_at


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_captured_text_of_worst_answers_is_sanitized(
    call: Call, store: TrackingStore, scored: Scored, text: str
) -> None:
    """Each text takes one line without control or direction characters, and long texts are truncated."""
    scored(
        store, [0.1], question=text, answer=text, route=text, details={"questions": [{"text": text, "similarity": 0.1}]}
    )

    lines = call("worst").out.split("\n")

    assert len(lines) == 7
    assert max(map(len, lines)) < 300
    kinds = {unicodedata.category(character) for line in lines for character in line if character != "\u200d"}
    assert {kind for kind in kinds if kind.startswith("C")} == set()


def test_exchange_ids_of_worst_answers_are_sanitized(store: TrackingStore) -> None:
    """The ids may come from an imported file."""
    exchange = an_exchange(id="\x1b[31mred\x07")
    store.exchanges.add([exchange])
    store.exchanges.record_scores(
        [RecordedScore(exchange_id=exchange.id, name="mine", value=0.1, recorded_at=datetime.now(UTC))]
    )
    found = "\n".join(describe_answer(store.answers.worst(limit=1)[0]))
    assert "exchange \ufffd[31mred\ufffd" in found


@pytest.mark.parametrize(
    "questions", ["text", [1], {"a": 1}, None, [{"similarity": 0.5}], [{"text": "x", "similarity": "y"}]]
)
def test_details_of_custom_scores_can_have_any_shape(
    call: Call, store: TrackingStore, scored: Scored, questions: Any
) -> None:
    """Unknown details are not an error."""
    scored(store, [0.1], details={"questions": questions})

    assert call("worst").code == 0


def test_worst_answers_can_be_filtered(call: Call, store: TrackingStore, scored: Scored) -> None:
    """The list can be filtered by route, scorer, time and number."""
    scored(store, [0.1, 0.2])
    scored(store, [0.3], route="search")
    scored(store, [0.4], scorer="other")
    scored(store, [0.5], started_at=datetime.now(UTC) - timedelta(days=3))

    def values(*options: str) -> list[float]:
        return [answer["value"] for answer in call("worst", "--json", *options).content["answers"]]

    assert values() == [0.1, 0.2, 0.3, 0.4]
    assert values("-n", "1") == [0.1]
    assert values("--route", "search") == [0.3]
    assert values("--scorer", "other") == [0.4]
    assert values("--since", "7d") == [0.1, 0.2, 0.3, 0.4, 0.5]


def test_an_empty_list_of_worst_answers_reports_that_there_are_no_scores(call: Call, database: str) -> None:
    """An empty list is not an error."""
    assert call("worst").out.startswith("No scores since ")
    assert call("worst", "--scorer", "x", "--route", "y").out.endswith(" UTC, scorer x, route y.\n")
    assert call("worst", "--json").content["answers"] == []
