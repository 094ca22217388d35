"""Searches by question: the scores of a window with their questions, and the last good answer to a question."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.exchange import Exchange, normalized_question
from germane.score import NONCOMMITTAL, Score, band_of
from germane.storage import AnswerFilter, SamplingDecision, TrackingStore
from germane.storage.answers import store_questions

LEASE = timedelta(hours=1)
Answered = Callable[..., Exchange]


@pytest.fixture
def answered(store: TrackingStore, make: Callable[..., Exchange]) -> Answered:
    """Write one scored exchange the given number of minutes after eleven."""

    def write(
        minutes: float,
        value: float,
        *,
        label: str | None = None,
        scorer: str = "r",
        fingerprint: str = "f1",
        **given: Any,
    ) -> Exchange:
        exchange = make(minutes, **given)
        store.exchanges.add([exchange])
        store.sampling.assign_tasks([SamplingDecision(exchange.id, 0.5, "sampled")], {scorer: fingerprint})
        (claim,) = store.queue.claim_tasks("me", {scorer: fingerprint}, limit=1, lease=LEASE)
        score = Score(scorer=scorer, fingerprint=fingerprint, value=value, label=label or band_of(value))
        store.queue.complete_tasks("me", [(claim.tasks[0], score)])
        return exchange

    return write


def last_good(store: TrackingStore, asked: Exchange, fingerprint: str = "f1") -> str | None:
    """Return the id of the last good answer to the question of an exchange with a low score."""
    found = store.questions.find_last_good(asked, Score(scorer="r", fingerprint=fingerprint, value=0.1))
    return None if found is None else found.exchange.id


@given(st.text(max_size=40))
def test_question_normalization_ignores_case_spacing_and_final_punctuation(text: str) -> None:
    """Normalizing twice changes nothing more, for any text."""
    normalized = normalized_question(text)

    assert normalized_question(f"  {text} ?! ") == normalized
    assert normalized == " ".join(normalized.split()).rstrip("?!.\u2026 ")


@pytest.mark.parametrize(
    "other", ["how do i pay", "HOW  DO\tI PAY?!", "\uff28\uff4f\uff57 do I pay\u2026", "How do I pay ?"]
)
def test_spelling_variants_of_a_question_count_as_the_same_question(other: str) -> None:
    """Width, case, whitespace and final punctuation do not matter."""
    assert normalized_question(other) == normalized_question("How do I pay?")


def test_scores_by_question_are_exactly_the_scores_that_match_the_filter(
    store: TrackingStore, answered: Answered
) -> None:
    """Other routes, versions, fingerprints and windows are excluded; the newest comes first."""
    older = answered(1, 0.9, prompt_version="7")
    newer = answered(2, 0.0, prompt_version="7", label=NONCOMMITTAL, question=None)
    answered(3, 0.9, prompt_version="6")
    answered(3, 0.9, prompt_version="7", route="other")
    answered(3, 0.9, prompt_version="7", fingerprint="f2")
    answered(30, 0.9, prompt_version="7")
    chosen = AnswerFilter(
        since=older.started_at,
        until=older.started_at + timedelta(minutes=20),
        scorer="r",
        route="ask",
        fingerprint="f1",
        prompt_version="7",
    )
    found = store.questions.load_question_scores(chosen)

    assert [(one.exchange_id, one.question, one.value) for one in found.scores] == [
        (newer.id, None, 0.0),
        (older.id, "How do I pay?", 0.9),
    ]
    assert (found.scores[0].label, found.scores[0].sampling_probability) == (NONCOMMITTAL, 0.5)
    assert found.searched_back_to is None


@pytest.mark.parametrize("limit", ["MAX_SCORES_SCANNED", "MAX_QUESTIONS_COMPARED"])
def test_truncated_question_search_states_how_far_back_it_went(
    store: TrackingStore, answered: Answered, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """All scores since that time are included."""
    written = [answered(minute, 0.9) for minute in range(6)]
    monkeypatch.setattr(store_questions, limit, 3)
    found = store.questions.load_question_scores(AnswerFilter(scorer="r"))

    assert found.searched_back_to is not None
    newer = {one.id for one in written if one.started_at >= found.searched_back_to}
    assert {one.exchange_id for one in found.scores} == newer
    assert 3 <= len(newer) <= 4


def test_last_good_answer_is_the_newest_earlier_answer_with_a_good_score(
    store: TrackingStore, answered: Answered
) -> None:
    """Later answers, and earlier ones that are low or refusals, do not count."""
    answered(1, 0.9)
    good = answered(2, 0.7, question="how do I  pay")
    answered(3, 0.2)
    answered(4, 0.0, label=NONCOMMITTAL)
    asked = answered(5, 0.1, question="How do I pay")
    answered(6, 0.9)

    assert last_good(store, asked) == good.id


@pytest.mark.parametrize(
    "other",
    [
        {"question": "How do I cancel?"},
        {"question": None},
        {"route": "other"},
        {"service": "other"},
        {"scorer": "s"},
        {"fingerprint": "f2"},
    ],
)
def test_last_good_answer_has_the_same_question_route_and_fingerprint(
    store: TrackingStore, answered: Answered, other: dict[str, Any]
) -> None:
    """An answer that differs in one of them is not comparable."""
    answered(1, 0.9, **other)

    assert last_good(store, answered(5, 0.1)) is None


@pytest.mark.parametrize("question", [None, "", " ?! "])
def test_answer_without_a_question_has_no_last_good_answer(
    store: TrackingStore, answered: Answered, question: str | None
) -> None:
    """Empty questions are not treated as the same question."""
    answered(1, 0.9, question=question)

    assert last_good(store, answered(5, 0.1, question=question)) is None


def test_search_for_the_last_good_answer_covers_a_limited_number_of_exchanges(
    store: TrackingStore, answered: Answered, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the newest exchanges of the route are read, and none that is too old."""
    answered(1, 0.9)
    answered(2, 0.9, question="Another?")
    asked = answered(3, 0.1)
    monkeypatch.setattr(store_questions, "MAX_EXCHANGES_SCANNED", 1)
    assert last_good(store, asked) is None
    monkeypatch.undo()
    assert last_good(store, asked) is not None
    monkeypatch.setattr(store_questions, "MAX_AGE", timedelta(minutes=1))
    assert last_good(store, asked) is None
