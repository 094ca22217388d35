"""Tests of `germane worst`."""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import insert, select
from tests.cases import each
from tests.cli.conftest import an_exchange

from germane.annotation import RecordedScore
from germane.cli.commands.worst import describe_answer
from germane.insights import InsightContext, ViewParams, load_overview
from germane.score import LOW_SCORE, NONCOMMITTAL, Score
from germane.settings import load_settings
from germane.storage import AnswerFilter, SamplingDecision, TrackingStore
from germane.storage.db.tables import score
from germane.testing import transaction

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

    assert values() == [0.1, 0.2, 0.3]
    assert values("-n", "1") == [0.1]
    assert values("--route", "search") == [0.3]
    assert values("--scorer", "other") == [0.4]
    assert values("--since", "7d") == [0.1, 0.2, 0.3, 0.5]


def test_an_empty_list_of_worst_answers_reports_that_there_are_no_scores(call: Call, database: str) -> None:
    """An empty list is not an error."""
    assert call("worst").out.startswith("No scores since ")
    assert call("worst", "--scorer", "x", "--route", "y").out.endswith(" UTC, scorer x, route y.\n")
    assert call("worst", "--json").content["answers"] == []


def score_with(store: TrackingStore, values: dict[str, float], scorer: str, fingerprint: str, at: datetime) -> None:
    """Score exchanges with one scorer. Answers that score 0 are refusals."""
    scorers = {scorer: fingerprint}
    store.sampling.assign_tasks([SamplingDecision(id_, 1.0, "sampled") for id_ in values], scorers)
    claims = store.queue.claim_tasks("test", scorers, limit=len(values), lease=timedelta(minutes=1))
    results = []
    for claim in claims:
        value = values[claim.exchange.id]
        label = NONCOMMITTAL if value == 0 else "relevant" if value >= LOW_SCORE else "irrelevant"
        result = Score(scorer=scorer, fingerprint=fingerprint, value=value, label=label, scored_at=at)
        results += [(task, result) for task in claim.tasks]
    store.queue.complete_tasks("test", results)


@each("seed", range(4))
def test_every_list_begins_with_the_same_worst_answer(call: Call, store: TrackingStore, seed: int) -> None:
    """It has the lowest score by one scorer, refusals included, and no list contains an answer twice."""
    chosen, now = random.Random(seed), datetime.now(UTC)
    scorer, route = "answer_relevancy", f"route-{seed}"
    exchanges = [
        an_exchange(
            route=route,
            service=route,
            started_at=now - timedelta(minutes=number + 1),
            question=f"Question {number % 4}?",
            answer=f"Answer {number}",
        )
        for number in range(24)
    ]
    store.exchanges.add(exchanges)
    refusals, low = chosen.choice([0, 1, 5, 20]), chosen.choice([0, 2])
    worth = [0.0] * refusals + [0.3] * low + [chosen.uniform(0.6, 1) for _ in range(24)]
    values = dict(zip([exchange.id for exchange in exchanges], worth, strict=False))
    score_with(store, {exchange.id: chosen.uniform(0, 0.2) for exchange in exchanges}, "faithfulness", "g", now)
    score_with(store, values, scorer, "new", now)
    newest_first = sorted(exchanges, key=lambda exchange: exchange.started_at, reverse=True)
    expected = min(newest_first, key=lambda exchange: values[exchange.id]).id
    view = ViewParams(window="", since=now - timedelta(hours=1), until=now, service=route)
    context = InsightContext(store=store, settings=load_settings(database="sqlite://"), now=lambda: now)
    found = AnswerFilter(scorer=scorer, route=route)

    lists = {
        "worst": [answer["exchange_id"] for answer in call("worst", "--route", route, "--json").content["answers"]],
        "worst -n 2": re.findall("exchange (.*)", call("worst", "--route", route, "-n", "2").out),
        "report": re.findall(r"\| ([0-9a-f]{32}) \|", call("report", "--service", route, "--format", "md").out),
        "overview": [answer.exchange.id for answer in load_overview(context, view).worst],
        "answers": [answer.exchange.id for answer in store.answers.search(found).answers],
    }
    assert len(lists["worst -n 2"]) == 2
    assert {name: listed[0] for name, listed in lists.items()} == dict.fromkeys(lists, expected)
    assert {name: len(set(listed)) for name, listed in lists.items()} == {name: len(x) for name, x in lists.items()}
    assert lists["worst"] == lists["report"] == lists["overview"]
    lowest = [answer for answer in lists["worst"] if values[answer] < LOW_SCORE]
    assert len(lowest) == min(10, refusals + low)  # a good answer never takes the place of a bad one
    assert sum(values[answer] == 0.3 for answer in lowest) == low  # a low score is never hidden
    for group in store.questions.group_by_question(found).groups:
        (first, *_) = store.answers.search(AnswerFilter(scorer=scorer, route=route, question=group.key)).answers
        assert (group.worst.exchange.id, group.worst.score) == (first.exchange.id, first.score)


def test_a_rescored_answer_is_listed_once(call: Call, store: TrackingStore) -> None:
    """The score is the one with the newest fingerprint."""
    now = datetime.now(UTC)
    exchanges = [an_exchange(started_at=now - timedelta(minutes=number + 1)) for number in range(2)]
    store.exchanges.add(exchanges)
    score_with(store, {exchange.id: 0.1 for exchange in exchanges}, "answer_relevancy", "f1", now)
    with transaction(store) as connection:
        old = connection.execute(select(score).where(score.c.exchange_id == exchanges[0].id)).mappings().one()
        changes = {"id": None, "fingerprint": "f2", "value": 0.2}
        connection.execute(insert(score).values({**old, **changes}))

    found = call("worst", "--json").content["answers"]

    assert [(answer["exchange_id"], answer["value"]) for answer in found] == [(exchanges[0].id, 0.2)]


def test_a_refusal_is_shown_in_words(call: Call, store: TrackingStore, scored: Scored) -> None:
    """The value 1 of ``noncommittal`` means that the answer is none, which a number does not show. Data keep it."""
    scored(store, [1.0, 0.0], scorer="noncommittal")

    lines = [line for line in call("worst", "--scorer", "noncommittal").out.splitlines() if "UTC" in line]

    assert [line.split("  ")[0] for line in lines] == ["refusal", "no refusal"], lines
    assert '"value": 1.0' in call("worst", "--scorer", "noncommittal", "--json").out
