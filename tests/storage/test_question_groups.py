"""Answers to the same question: normalized questions, the filter by question or id, and groups with their means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import update
from tests.storage.test_answers import write

from germane.annotation import Feedback
from germane.exchange import Exchange, normalized_question
from germane.score import UnscoredReason
from germane.storage import AnswerFilter, TrackingStore
from germane.storage.answers import search
from germane.storage.answers.questions import question_key
from germane.storage.db.tables import score
from germane.testing import transaction

Make = Callable[..., Exchange]
QUESTIONS = (
    "Can I pay by invoice?",
    "can I  pay by\tinvoice",
    "CAN I PAY BY INVOICE?!…",
    "\uff23an I pay by invoice\u3000?",
    "Can I pay by card?",
    "Who are you?",
)


@given(st.text(max_size=300))
def test_spelling_variants_of_a_question_have_the_same_group_key(text: str) -> None:
    """Case, surrounding white space and final punctuation make no difference, and keys are short and never empty."""
    key = question_key(text)

    assert question_key(f"  {text} \n?!. ") == key
    assert key
    assert len(key) <= 100
    if normalized_question(text.upper()) == normalized_question(text):
        assert question_key(text.upper()) == key


def test_long_questions_with_different_endings_are_in_different_groups() -> None:
    """The key of a long question contains a hash of its first 2,000 characters."""
    long = "please " * 40

    assert question_key(f"{long} stop") != question_key(f"{long} go on")
    assert question_key(f"{long} Stop!") == question_key(f"{long} stop")
    assert question_key("x" * 2_000 + "a") == question_key("x" * 2_000 + "b")


def write_questions(store: TrackingStore, make: Make) -> list[Exchange]:
    """Write one answer per question, each with a lower score than the previous one."""
    values = [0.9 - 0.1 * place for place in range(len(QUESTIONS))]
    return write(store, make, values, question=QUESTIONS.__getitem__)


def found(store: TrackingStore, **conditions: Any) -> list[int]:
    """Return the places of the matching answers, newest first."""
    page = store.answers.search(AnswerFilter(**conditions), sort="newest")
    return [int(answer.exchange.id, 16) for answer in page.answers]


def test_the_key_of_a_group_selects_exactly_the_answers_of_the_group(store: TrackingStore, make: Make) -> None:
    """Each group has its count, lowest answer and newest time, and its key selects exactly its answers."""
    exchanges = write_questions(store, make)
    grouped = store.questions.group_by_question(AnswerFilter(scorer="relevancy"))
    first = grouped.groups[0]

    assert [group.count for group in grouped.groups] == [4, 1, 1]
    assert (grouped.question_count, grouped.answer_count, grouped.without_question) == (3, 6, 0)
    assert (first.estimate.n, round(first.estimate.mean, 9)) == (4, 0.75)
    assert first.worst.exchange.id == exchanges[3].id
    assert first.worst.score is not None
    assert first.worst.score.value == pytest.approx(0.6)
    assert first.newest_at == exchanges[3].started_at
    assert [group.key for group in grouped.groups] == ["can i pay by invoice", "who are you", "can i pay by card"]
    assert found(store, question=first.key) == [3, 2, 1, 0]
    for question in QUESTIONS[:4]:
        assert found(store, question=question) == [3, 2, 1, 0]
    assert store.answers.count_matches(AnswerFilter(question=first.key)).count == 4
    assert store.questions.group_by_question(AnswerFilter(), limit=1).groups == grouped.groups[:1]


def test_a_refusal_is_the_worst_answer_of_its_group(store: TrackingStore, make: Make) -> None:
    """The worst answer is the first of the group's list by score. A good answer is never called the worst."""
    exchanges = write(store, make, [0.9, 0.0, 0.4, 0.0, 0.0], question=lambda place: "Why?" if place < 4 else "How?")
    with transaction(store) as connection:
        connection.execute(update(score).where(score.c.value == 0).values(label="noncommittal"))
    why, how = store.questions.group_by_question(AnswerFilter()).groups

    assert (why.worst.exchange.id, why.refusals, why.count) == (exchanges[3].id, 2, 4)
    assert (how.worst.exchange.id, how.refusals, how.count) == (exchanges[4].id, 1, 1)


def test_filters_by_question_or_id_can_be_combined_with_other_filters(store: TrackingStore, make: Make) -> None:
    """All conditions apply, in every state."""
    exchanges = write_questions(store, make)
    ids = tuple(one.id for one in exchanges)
    label = Feedback(id="1", exchange_id=ids[1], score=1.0, user="ada", created_at=exchanges[-1].started_at)
    store.labels.add_feedback([label])
    question = QUESTIONS[0]

    assert found(store, question=question, below=0.75) == [3, 2]
    assert found(store, question=question, since=exchanges[1].started_at, until=exchanges[3].started_at) == [2, 1]
    assert found(store, question=question, ids=ids[2:]) == [3, 2]
    assert found(store, question=question, labeled=True) == [1]
    assert found(store, question=question, labeled=False) == [3, 2, 0]
    assert found(store, ids=ids[:2], labeled=True) == [1]
    assert found(store, ids=ids[:2]) == [1, 0]
    assert found(store, ids=("unknown", ids[4])) == [4]
    assert found(store, ids=()) == []
    assert found(store, question="something else") == []
    for conditions in ({"ids": ids[:2]}, {"question": question, "ids": ids[:2]}):
        assert found(store, state="any", **conditions) == [1, 0]
        assert found(store, state="failed", **conditions) == []
        neighbors = store.answers.find_neighbors(AnswerFilter(**conditions), ids[1])
        assert (neighbors.next, neighbors.position) == (ids[0], 1)


def test_unscored_answers_are_found_by_question_and_id(store: TrackingStore, make: Make) -> None:
    """The states failed and waiting have the same filters."""
    values = [UnscoredReason.JUDGE_TIMEOUT, None, 0.5, UnscoredReason.JUDGE_TIMEOUT]
    exchanges = write(store, make, values, question=lambda place: "Why?" if place else "How?")

    assert found(store, state="failed", question="why") == [3]
    assert found(store, state="failed", reason="judge_timeout", ids=(exchanges[0].id, exchanges[1].id)) == [0]
    assert found(store, state="waiting", scorer="relevancy", question="why") == [1]
    assert found(store, state="any", question="why") == [3, 2, 1]


def test_answers_without_a_question_are_counted_separately(store: TrackingStore, make: Make) -> None:
    """Erased questions belong to no group; blank questions form one."""
    texts = (None, "?!", " . ", "Why?")
    write(store, make, [0.5] * 4, question=texts.__getitem__)
    grouped = store.questions.group_by_question(AnswerFilter())

    assert [(group.key, group.count) for group in grouped.groups] == [("?", 2), ("why", 1)]
    assert grouped.without_question == 1
    assert found(store, question="?") == [2, 1]


def test_truncated_group_search_reports_how_far_back_it_went(
    store: TrackingStore, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the newest answers are compared; sorted by time, the search continues from there and skips nothing."""
    monkeypatch.setattr(search, "MAX_QUESTIONS_COMPARED", 4)
    exchanges = write(store, make, [0.5] * 10, question=lambda place: ("a", "b")[place % 2])
    grouped = store.questions.group_by_question(AnswerFilter())
    summary = store.answers.summarize_matches(AnswerFilter())
    page = store.answers.search(AnswerFilter(question="a"), sort="newest")
    rest, after = [answer.exchange.id for answer in page.answers], page.next_cursor
    while after is not None:
        following = store.answers.search(AnswerFilter(question="a"), sort="newest", after=after)
        rest += [answer.exchange.id for answer in following.answers]
        after = following.next_cursor

    assert grouped.searched_back_to == summary.searched_back_to == page.searched_back_to == exchanges[6].started_at
    assert (grouped.answer_count, summary.count) == (4, 4)
    assert [answer.exchange.id for answer in page.answers] == [exchanges[8].id, exchanges[6].id]
    assert store.answers.count_matches(AnswerFilter(question="a")).is_capped
    assert rest == [exchanges[place].id for place in (8, 6, 4, 2, 0)]


def test_group_means_are_weighted_and_never_mix_fingerprints(store: TrackingStore, make: Make) -> None:
    """The mean of all matches equals the mean of the trends, and later fingerprints replace earlier ones."""
    exchanges = write(store, make, [0.1 * (place % 10) for place in range(30)], question=lambda _: "Why?")
    (line,) = store.trends.means(scorer="relevancy", since=exchanges[0].started_at)
    summary = store.answers.summarize_matches(AnswerFilter(scorer="relevancy"))
    (group,) = store.questions.group_by_question(AnswerFilter(scorer="relevancy")).groups

    assert summary.estimate is not None
    assert summary.estimate == group.estimate
    for name in ("n", "mean", "deviation", "low_share", "noncommittal_share"):
        assert getattr(group.estimate, name) == pytest.approx(getattr(line, name)), name
    assert group.estimate.interval == pytest.approx(line.interval)
    with transaction(store) as connection:
        newest = update(score).where(score.c.started_at > exchanges[19].started_at)
        connection.execute(newest.values(fingerprint="f2", sampling_probability=0.25))
    (group,) = store.questions.group_by_question(AnswerFilter()).groups
    assert (group.count, group.estimate.n) == (30, 10)


def test_hostile_questions_are_grouped_like_other_questions(store: TrackingStore, make: Make) -> None:
    """Unusual characters survive both databases, and every answer is in one group whose key finds it."""
    texts = (
        "' OR 1=1 --",
        "%_\\",
        "\u202eetuor",
        "\U0001f600" * 300,
        "<script>",
        "ŉ",
        "ẞ",
        "İ",
        "ﬁ\u0345",
        "x" * 90_000,
    )
    write(store, make, [0.5] * len(texts), question=texts.__getitem__)
    groups = store.questions.group_by_question(AnswerFilter()).groups

    assert Counter(group.count for group in groups) == {1: len(texts)}
    for group in groups:
        assert found(store, question=group.key) == [int(group.worst.exchange.id, 16)]
        assert found(store, question=group.worst.exchange.question) == [int(group.worst.exchange.id, 16)]


def test_selecting_deleted_answers_returns_no_answers(store: TrackingStore, make: Make) -> None:
    """A selection whose exchanges were deleted is empty rather than an error."""
    exchanges = write_questions(store, make)
    store.retention.prune(before=exchanges[-1].started_at + timedelta(days=1))

    assert found(store, ids=(exchanges[0].id,)) == []
    assert store.questions.group_by_question(AnswerFilter()).groups == []
