"""Tests of `germane calibrate`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import germane
from germane.annotation import Feedback
from germane.exchange import Exchange, new_exchange_id
from germane.score import UNRATED_MEANINGS
from germane.storage import AnswerFilter, TrackingStore
from germane.testing import FakeJudge

Call = Callable[..., Any]
Scored = Callable[..., list[Exchange]]
TOPICS = [f"{word}{number}" for number in range(10) for word in ("shoe", "hat", "coat", "sock", "belt", "tie")]
"""Return sixty words that no other topic contains."""


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeJudge]:
    """An HTTP judge and embedder, configured in the environment. The vectors are word counts."""
    with FakeJudge() as running:
        for name, value in running.settings().items():
            monkeypatch.setenv(f"GERMANE_{name.upper()}", str(value))
        yield running


def fill(store: TrackingStore, scored: Scored, topics: list[str], value: Callable[[int], float]) -> list[Exchange]:
    """Write scored exchanges on different topics, whose questions and answers have the same wording."""
    found: list[Exchange] = []
    for number, topic in enumerate(topics):
        texts = {"question": f"where is the {topic} now", "answer": f"the {topic} lies in drawer {number}"}
        found += scored(store, [value(number)], embedder="fake-embedder", **texts)
    return found


def label(store: TrackingStore, exchange: Exchange, score: float, **given: Any) -> None:
    """Write a person's label of an answer."""
    created_at = given.pop("created_at", datetime.now(UTC))
    store.labels.add_feedback([
        Feedback(id=new_exchange_id(), exchange_id=exchange.id, score=score, created_at=created_at, **given)
    ])  # fmt: skip


def test_saved_floors_are_mean_similarities_of_unrelated_pairs(
    call: Call, judge: FakeJudge, store: TrackingStore, scored: Scored
) -> None:
    """Any two questions share four of five words, so the floor is about 0.8. The doctor and report show it."""
    fill(store, scored, TOPICS, lambda number: 0.7)

    content = call("calibrate", "--save", "--json").content

    floors = {floor["scorer"]: floor for floor in content["floors"]}
    assert set(floors) == {"answer_relevancy", "question_answer_similarity"}
    questions = floors["answer_relevancy"]
    assert (questions["n"], questions["embedder"], questions["pairs"]) == (60, "fake-embedder", "two questions")
    assert questions["floor"] == pytest.approx(0.8, abs=0.02)
    assert questions["interval"]["low"] <= questions["floor"] <= questions["interval"]["high"]
    assert questions["floor"] < questions["topic_floor"] < 0.9
    saved = {one.scorer: one for one in store.labels.list_calibrations()}
    assert {name: one.floor for name, one in saved.items()} == {name: one["floor"] for name, one in floors.items()}
    expected = str(saved["answer_relevancy"])
    assert expected in call("doctor", "--offline").out
    assert expected in call("report").out


def stored_labels(store: TrackingStore) -> Counter[str | None]:
    """Count the labels of all stored scores."""
    page = store.answers.search(AnswerFilter(scorer="answer_relevancy"), limit=1000)
    return Counter(answer.score.label for answer in page.answers if answer.score is not None)


def test_changed_labels_are_shown_with_examples(
    call: Call, judge: FakeJudge, store: TrackingStore, scored: Scored
) -> None:
    """An uncalibrated cosine of 0.7 is "mostly relevant", but here it is lower than that of unrelated questions.

    Without --save, the stored labels do not change.
    """
    fill(store, scored, TOPICS, lambda number: 0.7)

    ended = call("calibrate")

    assert "With these floors, 60 of the 60 newest labels would change." in ended.out
    examples = [line for line in ended.out.splitlines() if "mostly_relevant" in line]
    assert len(examples) == 10
    assert all("0.70" in line and "irrelevant" in line and "where is the" in line for line in examples)
    assert stored_labels(store) == {"mostly_relevant": 60}


def test_saving_floors_changes_the_stored_labels_of_scores(
    call: Call, judge: FakeJudge, store: TrackingStore, scored: Scored
) -> None:
    """The label, its explanation and the share of low scores are updated, but the value is not.

    Shares in rollups are updated too. A second run finds nothing to change.
    """
    exchanges = fill(store, scored, TOPICS, lambda number: 0.7)
    store.rollups.update()

    ended = call("calibrate", "--save")

    assert "60 of the 60 newest labels changed. Older scores keep their labels." in ended.out
    assert stored_labels(store) == {"irrelevant": 60}
    assert store.rollups.count_dirty_hours() > 0
    [score] = store.answers.get_scores([exchanges[0].id])[exchanges[0].id]
    assert (score.value, score.details["calibrated"]) == (0.7, 0.0)
    assert score.explanation == f"{UNRATED_MEANINGS['irrelevant']}."
    assert "0 of the 60 newest labels changed." in call("calibrate", "--save").out


def test_calibration_labels_scores_from_an_embedder_without_shipped_floors(
    call: Call, monkeypatch: pytest.MonkeyPatch, database: str
) -> None:
    """Scores from such an embedder have no label until --save labels them. Later scores are labeled directly."""
    with FakeJudge(embedding_model="text-embedding-large") as judge:
        for name, value in judge.settings().items():
            monkeypatch.setenv(f"GERMANE_{name.upper()}", str(value))
        monkeypatch.setenv("GERMANE_SCORERS", "question_answer_similarity")

        @germane.observe
        def ask(question: str) -> str:
            return f"the {question.split()[3]} lies in drawer {len(question)}"

        def answer(topics: list[str]) -> None:
            germane.start(poll_interval=0.05)
            for topic in topics:
                ask(f"where is the {topic} now")
            assert germane.stop(drain_timeout=60)

        answer(TOPICS)
        ended = call("calibrate", "--save")
        answer(["scarf"])

    assert "60 of the 60 newest labels changed." in ended.out
    assert sum("uncalibrated" in line for line in ended.out.splitlines()) == 10
    opened = TrackingStore(database)
    page = opened.answers.search(AnswerFilter(scorer="question_answer_similarity"), limit=1000)
    labels = [found.score.label for found in page.answers if found.score is not None]
    opened.close()
    assert len(labels) == 61
    assert "uncalibrated" not in labels


def test_scores_from_another_embedder_are_not_compared(
    call: Call, judge: FakeJudge, store: TrackingStore, scored: Scored
) -> None:
    """The new floors do not apply to these scores."""
    for topic in TOPICS:
        scored(store, [0.7], embedder="other", question=f"where is the {topic} now", answer=f"the {topic} is here")

    content = call("calibrate", "--json").content

    assert content["label_changes"] == {"compared": 0, "changes": []}


def test_floors_are_not_stored_without_the_save_option(
    call: Call, judge: FakeJudge, store: TrackingStore, scored: Scored
) -> None:
    """The output names the option."""
    fill(store, scored, TOPICS, lambda number: 0.7)

    ended = call("calibrate")

    assert ended.code == 0
    assert "two questions  60  0.80" in ended.out
    assert "Not saved. To save the floors, pass --save." in ended.out
    assert "no labels" in ended.out
    assert store.labels.list_calibrations() == []


def test_measuring_floors_requires_enough_exchanges(
    call: Call, judge: FakeJudge, store: TrackingStore, scored: Scored
) -> None:
    """Repeated questions count once. Nothing is embedded or saved."""
    fill(store, scored, TOPICS[:49], lambda number: 0.7)
    scored(store, [0.5] * 30, question="Where is the  SHOE0 now")

    ended = call("calibrate", "--save")

    assert ended.code == 5
    assert "not enough data (n=49 exchanges with different questions, need 50)" in ended.out
    assert (store.labels.list_calibrations(), judge.embedding_requests) == ([], [])


def test_scorers_are_compared_with_labels(call: Call, judge: FakeJudge, store: TrackingStore, scored: Scored) -> None:
    """A metric that ranks answers like the labels has an AUC of 1. Only a person's latest label counts."""
    exchanges = fill(store, scored, TOPICS[:30], lambda number: 0.9 if number % 2 else 0.1)
    for number, exchange in enumerate(exchanges):
        early = datetime(2026, 1, 1, tzinfo=UTC)
        label(store, exchange, 1.0 - number % 2, user="ann", created_at=early)
        label(store, exchange, float(number % 2), user="ann")

    content = call("calibrate", "--json").content

    assert content["labeled"] == 30
    metric, longer, shorter, overlap = content["agreement"]
    assert [one["metric"] for one in (longer, shorter, overlap)] == [
        "longer answer",
        "shorter answer",
        "question overlap",
    ]
    assert (metric["metric"], metric["n"], metric["labeled"]) == ("answer_relevancy", 30, 30)
    assert (metric["auc"]["value"], metric["auc"]["low"]) == (1.0, 1.0)
    assert metric["spearman"]["value"] == pytest.approx(1.0)
    assert metric["pairs"] is None
    assert (longer["n"], overlap["n"]) == (30, 30)
    assert longer["auc"]["value"] == pytest.approx(1 - shorter["auc"]["value"])


def test_pairwise_agreement_compares_answers_to_the_same_question(
    call: Call, judge: FakeJudge, store: TrackingStore, scored: Scored
) -> None:
    """The metric agrees with people on three of four questions."""
    for topic in range(20):
        values = [0.2, 0.8] if topic % 4 == 0 else [0.8, 0.2]
        good, bad = (scored(store, [value], question=f"topic {topic}")[0] for value in values)
        label(store, good, 1.0)
        label(store, bad, 0.0)

    [metric, *_] = call("calibrate", "--json").content["agreement"]

    assert metric["pairs"]["value"] == metric["pairs_absent_half"]["value"] == 0.75
    assert (metric["pairs"]["units"], metric["n"]) == (20, 40)


def test_agreement_statistics_require_enough_labels(
    call: Call, judge: FakeJudge, store: TrackingStore, scored: Scored
) -> None:
    """With fewer than 20 labels, no statistic is shown."""
    for exchange in fill(store, scored, TOPICS[:19], lambda number: 0.5):
        label(store, exchange, 1.0)

    assert "not enough data (19 questions, need 20)" in call("calibrate").out


def test_too_few_distinct_questions_yield_no_agreement_statistics(
    call: Call, judge: FakeJudge, store: TrackingStore, scored: Scored
) -> None:
    """Forty answers to 19 questions count as 19 units, because the bootstrap resamples questions."""
    for number in range(40):
        [exchange] = scored(store, [number / 40], question=f"topic {number % 19}")
        label(store, exchange, number % 2)

    [metric, *_] = call("calibrate", "--json").content["agreement"]

    assert (metric["n"], metric["questions"], metric["spearman"], metric["auc"], metric["pairs"]) == (
        *(40, 19),
        *(None, None, None),
    )


def test_pairwise_statistics_require_enough_questions(
    call: Call, judge: FakeJudge, store: TrackingStore, scored: Scored
) -> None:
    """An AUC needs five questions per class, and pairwise accuracy 20 questions with different labels."""
    for number in range(30):
        [exchange] = scored(store, [number / 30], question=f"topic {number % 29}")
        label(store, exchange, 0.0 if number < 4 else 1.0)

    [metric, *_] = call("calibrate", "--json").content["agreement"]

    assert metric["spearman"]["units"] == 29
    assert (metric["auc"], metric["pairs"], metric["pairs_absent_half"]) == (None, None, None)


def test_an_exchange_attribute_named_group_does_not_define_groups(
    call: Call, judge: FakeJudge, store: TrackingStore, scored: Scored
) -> None:
    """An application may have its own attribute named group. The units are still questions."""
    for number in range(20):
        [exchange] = scored(store, [0.5], question=f"topic {number}", attributes={"group": "a", "unit": "b"})
        label(store, exchange, 1.0)

    [metric, *_] = call("calibrate", "--json").content["agreement"]

    assert metric["questions"] == 20


def vote(
    store: TrackingStore, scored: Scored, count: int, false: int, questions: int | None = None, **given: Any
) -> None:
    """Write good answers, with the given number of noncommittal votes by the judge."""
    for number in range(count):
        cast = [{"text": "?", "similarity": 0.5, "noncommittal": number < false or place == 0} for place in range(3)]
        topic = f"topic {number % (questions or count)}"
        [exchange] = scored(store, [0.5], question=topic, details={"questions": cast}, **given)
        label(store, exchange, 0.75)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "false", "questions", "verdict"),
    [(59, 0, 59, True), (93, 1, 93, True), (60, 4, 60, False), (58, 0, 58, None), (60, 3, 60, None), (200, 0, 30, None),
     (19, 19, 19, None)],
    ids=["none of 59", "one of 93", "more than 5%", "none of 58", "3 of 60", "few questions", "too few for a no"],
)  # fmt: skip
def test_refusal_votes_count_as_reliable_below_the_limit_for_false_votes(
    call: Call,
    judge: FakeJudge,
    store: TrackingStore,
    scored: Scored,
    count: int,
    false: int,
    questions: int,
    verdict: Any,
) -> None:
    """The limit is 5% false votes on good answers, with 95% confidence. One vote of three is not a majority."""
    vote(store, scored, count, false, questions)

    found = call("calibrate", "--json").content["refusal_votes"]

    assert (found["n"], found["questions"], found["are_reliable"]) == (count, questions, verdict)
    assert found["false_rate"] == pytest.approx(false / count)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "false", "expected"),
    [
        (
            59,
            0,
            "are reliable: the judge classifies 0.0% of 59 good answers (59 questions) as refusals, at most 5.0% with",
        ),
        (
            60,
            6,
            "are not reliable: the judge classifies 10.0% of 60 good answers (60 questions) as refusals (limit 5%).",
        ),
        (30, 1, "at most 14.9% with 95% confidence (limit 5%). Without further false votes, 93 questions are enough."),
        (0, 0, "no votes on good answers yet. Try a labeled file"),
    ],
    ids=["yes", "no", "not known", "never tried"],
)
def test_refusal_votes_come_with_a_recommendation(
    call: Call, judge: FakeJudge, store: TrackingStore, scored: Scored, count: int, false: int, expected: str
) -> None:
    """The sentence states the share, the sample size, the limit and the setting to change."""
    vote(store, scored, count, false)

    assert expected in call("calibrate").out


def test_refusal_votes_from_earlier_fingerprints_are_ignored(
    call: Call, judge: FakeJudge, store: TrackingStore, scored: Scored
) -> None:
    """Other judges vote differently."""
    vote(store, scored, 30, 30, fingerprint="old")
    vote(store, scored, 60, 0, fingerprint="new")

    found = call("calibrate", "--json").content["refusal_votes"]

    assert (found["n"], found["false_rate"], found["are_reliable"]) == (60, 0.0, True)


def test_a_file_of_labels_refers_to_stored_exchanges_by_id(
    call: Call, judge: FakeJudge, store: TrackingStore, scored: Scored, tmp_path: Path
) -> None:
    """Scores come from the database. A row without an id is rejected with its location."""
    exchanges = fill(store, scored, TOPICS[:20], lambda number: number / 20)
    path = tmp_path / "labels.jsonl"
    rows = [{"exchange_id": one.id, "label": number / 20} for number, one in enumerate(exchanges)]
    path.write_text("\n".join(map(json.dumps, rows)))

    [metric, *_] = call("calibrate", "--labels", str(path), "--json").content["agreement"]
    assert metric["spearman"]["value"] == pytest.approx(1.0)

    path.write_text(json.dumps({"question": "q", "answer": "a", "label": 1}))
    assert "must have exchange_id" in call("calibrate", "--labels", str(path)).err


def test_labels_of_unknown_exchanges_are_reported(
    call: Call, judge: FakeJudge, store: TrackingStore, scored: Scored, tmp_path: Path
) -> None:
    """If no exchange of a file is in the database, the command fails instead of asking for labels."""
    (known,) = fill(store, scored, TOPICS[:1], lambda number: 0.5)
    path = tmp_path / "labels.csv"
    path.write_text("exchange_id,label\nno1,1\nno2,0\n")
    failed = call("calibrate", "--labels", str(path))
    path.write_text(f"exchange_id,label\nno1,1\nno1,0\nno2,0\n{known.id},1\n")

    ended, content = (call("calibrate", "--labels", str(path), *option) for option in ([], ["--json"]))

    assert (failed.code, failed.out) == (1, "")
    assert f"{path} contains no label of an exchange in the database. The column exchange_id must" in failed.err
    assert "3 labels refer to exchanges that are not in the database.\nAgreement with human labels for 1 " in ended.out
    assert (content.content["unknown_labels"], content.content["labeled"]) == (3, 1)


def test_several_labels_of_an_exchange_in_a_file_are_averaged(
    call: Call, judge: FakeJudge, store: TrackingStore, scored: Scored, tmp_path: Path
) -> None:
    """The order of the rows does not matter. Stored labels of several people are averaged, too."""
    exchanges = fill(store, scored, TOPICS[:20], lambda number: number / 20)
    path = tmp_path / "labels.csv"
    rows = [f"{one.id},{label}" for number, one in enumerate(exchanges) for label in (number / 20, 1, 0)]
    path.write_text("\n".join(["exchange_id,label", *rows]))

    [metric, *_] = call("calibrate", "--labels", str(path), "--json").content["agreement"]

    assert (metric["labeled"], metric["spearman"]["value"]) == (20, pytest.approx(1.0))


def test_a_file_of_labeled_rows_is_scored_without_a_database(
    call: Call, judge: FakeJudge, monkeypatch: Any, tmp_path: Path
) -> None:
    """Groups and labels come from the file."""
    monkeypatch.setenv("GERMANE_SCORERS", "question_answer_similarity")
    path = tmp_path / "rows.jsonl"
    rows = [
        {"question": f"where is the {topic}", "answer": answer, "label": value, "group": topic}
        for topic in TOPICS[:50]
        for answer, value in ((f"there is the {topic}", 1.0), ("nobody can say such things", 0.0))
    ]
    path.write_text("\n".join(map(json.dumps, rows)))

    content = call("calibrate", "--file", str(path), "--json").content

    assert [floor["n"] for floor in content["floors"]] == [50, 50]
    metric = content["agreement"][0]
    assert (metric["metric"], metric["n"], metric["pairs"]["value"]) == ("question_answer_similarity", 100, 1.0)
    assert not Path("germane.db").exists()


def test_the_scorers_and_columns_options_apply_only_to_files(call: Call, judge: FakeJudge, tmp_path: Path) -> None:
    """The options work as in `germane score`."""
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"q": "Why?", "answer": "Because.", "label": 1}))
    chosen = ("--scorer", "noncommittal", "--columns", "question=q")

    content = call("calibrate", "--file", str(path), *chosen, "--json").content

    assert "noncommittal" in {one["metric"] for one in content["agreement"]}
    assert judge.chat_requests == []
    assert call("calibrate", *chosen).code == 2


def test_a_group_of_rows_cannot_span_several_units(
    call: Call, judge: FakeJudge, monkeypatch: Any, tmp_path: Path
) -> None:
    """The bootstrap would separate the rows of the group."""
    monkeypatch.setenv("GERMANE_SCORERS", "question_answer_similarity")
    path = tmp_path / "rows.jsonl"
    rows = [{"question": f"q {n}", "answer": f"a {n}", "label": n % 2, "group": "g", "unit": n} for n in range(20)]
    path.write_text("\n".join(map(json.dumps, rows)))

    ended = call("calibrate", "--file", str(path))

    assert (ended.code, "group 'g' contains several units" in ended.err) == (1, True)


def test_an_invalid_label_is_rejected_with_its_location(call: Call, judge: FakeJudge, tmp_path: Path) -> None:
    """Ratings must be converted to the range from 0 to 1 first."""
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"question": "q", "answer": "a", "label": 5}))

    ended = call("calibrate", "--file", str(path))

    assert ended.code == 1
    assert "`label` must be a number from 0 to 1, not" in ended.err


def test_metric_names_in_calibration_output_are_sanitized(
    call: Call, judge: FakeJudge, store: TrackingStore, scored: Scored
) -> None:
    """A metric may have any name."""
    for topic in TOPICS[:20]:
        label(store, scored(store, [0.5], scorer="bad\x1b[2J", question=topic)[0], 1.0)

    assert "\x1b" not in call("calibrate").out


def test_calibrations_for_other_embedders_are_not_shown(
    call: Call, judge: FakeJudge, store: TrackingStore, scored: Scored
) -> None:
    """The doctor reports that the current embedder is not calibrated, and how to calibrate it."""
    fill(store, scored, TOPICS, lambda number: 0.7)
    call("calibrate", "--save")
    store.labels.add_calibrations(
        [replace(one, embedder="old", floor=0.01) for one in store.labels.list_calibrations()]
    )

    assert "floor 0.01" not in call("doctor", "--offline").out
