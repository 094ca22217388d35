"""What `germane worst` shows."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.cli.conftest import an_exchange

from germane.annotation import Recorded
from germane.cli.commands.worst import describe
from germane.storage import Store

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


def test_the_lowest_come_first_with_what_they_were_made_from(call: Call, store: Store, scored: Scored) -> None:
    """An answer, its score, and the questions that the judge thought it answers."""
    scored(store, [0.9, 0.1, 0.5])
    reads_as = {"questions": [{"text": "What colour?", "similarity": 0.05}, {"text": "unused", "similarity": None}]}
    scored(store, [0.05], details=reads_as, question="How do I pay?", answer="It is blue.")

    lines = call("worst", "-n", "2").out.splitlines()

    assert lines[0].startswith(" 0.05  off  ask  ")
    assert lines[1:4] == [
        "       asked     How do I pay?",
        "       answered  It is blue.",
        "       reads as  What colour?  (0.05)",
    ]
    assert lines[4].startswith("       scored    by answer_relevancy, exchange ")
    assert lines[6].startswith(" 0.10  off  ask  ")
    assert len(lines) == 11


def test_a_calibrated_label_comes_with_the_value_that_it_stands_for(call: Call, store: Store, scored: Scored) -> None:
    """Else a reader could not tell why two answers of one value have two labels."""
    scored(store, [0.62], details={"calibrated": 0.51})

    assert call("worst").out.startswith(" 0.62  partly (calibrated 0.51)  ask  ")


def test_text_that_is_gone_is_said_to_be_gone(call: Call, store: Store, scored: Scored) -> None:
    """The score stays, and so does its place in the list."""
    scored(store, [0.1], details={"questions": [{"text": "What colour?", "similarity": 0.05}]})
    store.prune(texts_before=datetime.now(UTC) + timedelta(minutes=1))

    out = call("worst").out

    assert out.count("(erased, or never kept)") == 3
    assert "None" not in out


def test_json_holds_the_whole_answer(call: Call, store: Store, scored: Scored) -> None:
    """Nothing is cut or replaced for a program."""
    (exchange,) = scored(store, [0.1], question=HOSTILE[1], answer=HOSTILE[3], details={"questions": []})

    (answer,) = call("worst", "--json").content["answers"]

    assert (answer["exchange_id"], answer["trace_id"]) == (exchange.id, exchange.trace_id)
    assert (answer["question"], answer["answer"]) == (HOSTILE[1], HOSTILE[3])
    assert (answer["value"], answer["label"], answer["scorer"]) == (0.1, "off", "answer_relevancy")
    assert datetime.fromisoformat(answer["started_at"]) == exchange.started_at


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_captured_text_cannot_trick_a_terminal(call: Call, store: Store, scored: Scored, text: str) -> None:
    """Each text stays on its line; no control or direction mark gets through; a long one is cut."""
    scored(
        store, [0.1], question=text, answer=text, route=text, details={"questions": [{"text": text, "similarity": 0.1}]}
    )

    lines = call("worst").out.split("\n")

    assert len(lines) == 7
    assert max(map(len, lines)) < 300
    kinds = {unicodedata.category(character) for line in lines for character in line if character != "\u200d"}
    assert {kind for kind in kinds if kind.startswith("C")} == set()


def test_an_id_cannot_trick_a_terminal(store: Store) -> None:
    """It may have come with a file. click takes colours away only where nobody looks: at a terminal nothing does."""
    exchange = an_exchange(id="\x1b[31mred\x07")
    store.add([exchange])
    store.record([Recorded(exchange_id=exchange.id, name="mine", value=0.1, recorded_at=datetime.now(UTC))])
    found = "\n".join(describe(store.worst(limit=1)[0]))
    assert "exchange \ufffd[31mred\ufffd" in found


@pytest.mark.parametrize(
    "questions", ["text", [1], {"a": 1}, None, [{"similarity": 0.5}], [{"text": "x", "similarity": "y"}]]
)
def test_a_scorer_of_a_users_own_may_keep_anything(call: Call, store: Store, scored: Scored, questions: Any) -> None:
    """Details of another shape are no error."""
    scored(store, [0.1], details={"questions": questions})

    assert call("worst").code == 0


def test_filters_and_limits(call: Call, store: Store, scored: Scored) -> None:
    """By route, scorer and time."""
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


def test_no_scores_are_said_so(call: Call, database: str) -> None:
    """An empty list is no error."""
    assert call("worst").out.startswith("No scores since ")
    assert call("worst", "--scorer", "x", "--route", "y").out.endswith(" UTC, by x, route y.\n")
    assert call("worst", "--json").content["answers"] == []
