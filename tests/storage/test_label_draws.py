"""Waves: answers drawn at random to be labeled, and the labels that people give them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import insert, select, text
from tests.exports import load_records
from tests.storage.archive_templates import Copy
from tests.storage.archiving import archive
from tests.storage.conftest import ELEVEN, an_exchange

from germane.annotation import EXTERNAL_FINGERPRINT, Feedback
from germane.errors import UsageError
from germane.exchange import Exchange, new_exchange_id
from germane.storage import DrawnCounts, LabelPopulation, LabelWave, TrackingStore
from germane.storage.db.tables import feedback, label_draw, score, scoring_task
from germane.testing import Clock, transaction

Make = Callable[..., Exchange]
NOON = datetime.fromisoformat("2026-03-01T12:00:00Z")
SINCE = NOON - timedelta(hours=2)
ALL = LabelPopulation(since=SINCE, until=NOON, scorer="relevancy")


def add_scored(
    store: TrackingStore,
    chances: Sequence[float | None],
    *,
    fingerprint: str = "f1",
    scorer: str = "relevancy",
    **given: Any,
) -> list[Exchange]:
    """Store answers that were scored with these probabilities."""
    exchanges = [an_exchange(number / 60, **given) for number in range(len(chances))]
    store.exchanges.add(exchanges)
    rows = [
        {
            "exchange_id": one.id,
            "scorer": scorer,
            "fingerprint": fingerprint,
            "service": one.service,
            "route": one.route,
            "started_at": one.started_at,
            "sampling_probability": chance,
            "value": number / len(chances),
            "details": {},
        }
        for number, (one, chance) in enumerate(zip(exchanges, chances, strict=True))
    ]
    task = {"state": "done", "claims": 1, "first_pending_at": NOON}
    tasks = [{**task, **{name: row[name] for name in ("exchange_id", "scorer", "fingerprint")}} for row in rows]
    with transaction(store) as connection:
        connection.execute(insert(score), rows)
        connection.execute(insert(scoring_task), tasks)
    return exchanges


def drawn(store: TrackingStore, wave: LabelWave) -> dict[str, Any]:
    """Return the rows of a wave, by the exchange's id."""
    with transaction(store, read_only=True) as connection:
        rows = connection.execute(select(label_draw).where(label_draw.c.wave == wave.id)).mappings()
        return {row["exchange_id"]: row for row in rows}


def next_id(store: TrackingStore, wave: LabelWave) -> str:
    found = store.draws.next_answer(wave.id)
    assert found is not None
    return found[1]


def counts(store: TrackingStore, wave: LabelWave) -> DrawnCounts:
    return store.draws.get_wave(wave.id).total


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    routes=st.dictionaries(
        st.sampled_from("abc"), st.lists(st.sampled_from([0.02, 0.3, 1.0, None]), min_size=1, max_size=12), min_size=1
    ),
    count=st.integers(1, 30),
    seed=st.integers(0, 2**32),
)
def test_each_answer_of_a_route_has_the_same_chance_to_be_drawn(
    sqlite_store: TrackingStore, routes: dict[str, list[float | None]], count: int, seed: int
) -> None:
    """Unless it was scored with a smaller probability than that: then it is always drawn, if it was scored."""
    service = new_exchange_id()
    chances: dict[str, float] = {}
    for route, probabilities in routes.items():
        scored = add_scored(sqlite_store, probabilities, service=service, route=route)
        chances |= {one.id: chance or 1.0 for one, chance in zip(scored, probabilities, strict=True)}
    population = LabelPopulation(since=SINCE, until=NOON, scorer="relevancy", service=service)

    wave = sqlite_store.draws.draw(population, count, generator=np.random.default_rng(seed))

    rows = drawn(sqlite_store, wave)
    assert len(rows) == wave.total.size == wave.total.open == min(count, len(chances))
    assert sorted(row["position"] for row in rows.values()) == list(range(1, len(rows) + 1))
    assert {(row["fingerprint"], row["service"], row["state"]) for row in rows.values()} == {("f1", service, "open")}
    for counted in wave.routes:
        of_route = {id_: row["probability"] for id_, row in rows.items() if row["route"] == counted.route}
        assert len(of_route) == counted.size
        shared = {round(p, 9) for id_, p in of_route.items() if p < chances[id_] - 1e-9}
        assert len(shared) <= 1
        assert all(round(p, 9) in shared or p == pytest.approx(chances[id_]) for id_, p in of_route.items())
        expected = sum(1 / (chance or 1.0) for chance in routes[counted.route])  # answers in the window
        if all(p < chances[id_] - 1e-9 for id_, p in of_route.items()):
            assert shared == {round(counted.size / expected, 9)}


def test_answers_are_drawn_as_often_as_their_weights_say(sqlite_store: TrackingStore) -> None:
    """An answer that was scored with half the probability is drawn twice as often. The order of a wave is random."""
    scored = add_scored(sqlite_store, [0.5, 1.0] * 6)
    seen, place, random = Counter[str](), Counter[int](), np.random.default_rng(1)
    for number in range(150):
        population = LabelPopulation(since=SINCE, until=NOON + timedelta(seconds=number), scorer="relevancy")
        rows = drawn(sqlite_store, sqlite_store.draws.draw(population, 3, generator=random))
        seen.update(rows.keys())
        oldest = next(one.id for one in scored if one.id in rows)
        place[rows[oldest]["position"]] += 1

    for number, one in enumerate(scored):
        expected = 150 * 3 * (2 if number % 2 == 0 else 1) / 18
        assert seen[one.id] == pytest.approx(expected, abs=4 * expected**0.5)
    assert all(place[position] == pytest.approx(50, abs=25) for position in (1, 2, 3))


def test_only_scores_of_one_scorer_with_the_newest_fingerprint_are_drawn(store: TrackingStore) -> None:
    """Of the window, the service and the route that were asked for."""
    add_scored(store, [1.0], fingerprint="f0")
    wanted = add_scored(store, [1.0, None], started_at=NOON - timedelta(minutes=5))
    add_scored(store, [1.0], scorer="faithfulness")
    other = add_scored(store, [1.0], service="support", route="find", started_at=NOON - timedelta(minutes=5))
    add_scored(store, [1.0], started_at=NOON)
    add_scored(store, [1.0], started_at=SINCE - timedelta(seconds=1))
    add_scored(store, [1.0], started_at=NOON - timedelta(minutes=1), fingerprint=EXTERNAL_FINGERPRINT)
    external = add_scored(store, [1.0], scorer="clicks", fingerprint=EXTERNAL_FINGERPRINT)

    wave = store.draws.draw(ALL, 50)
    assert drawn(store, wave).keys() == {one.id for one in (*wanted, *other)}
    assert [(one.service, one.route, one.size) for one in wave.routes] == [("shop", "ask", 2), ("support", "find", 1)]
    assert (wave.since, wave.until, wave.drawn_at, wave.fingerprint) == (ELEVEN, NOON, NOON, "f1")
    for seconds, chosen in enumerate(({"service": "support"}, {"route": "find"})):
        later = LabelPopulation(since=SINCE, until=NOON - timedelta(seconds=seconds + 1), scorer="relevancy", **chosen)
        assert drawn(store, store.draws.draw(later, 50)).keys() == {other[0].id}
    elsewhere = LabelPopulation(since=SINCE, until=NOON, scorer="clicks")
    assert drawn(store, store.draws.draw(elsewhere, 50)).keys() == {external[0].id}


def test_a_second_wave_of_a_window_has_other_answers(store: TrackingStore, clock: Clock) -> None:
    """The first wave keeps its answers. A wave of another window may have them again."""
    add_scored(store, [1.0] * 10)
    first = store.draws.draw(ALL, 6)
    clock.advance(seconds=1)
    second = store.draws.draw(ALL, 6)

    assert (first.total.size, second.total.size) == (6, 4)
    assert not drawn(store, first).keys() & drawn(store, second).keys()
    assert store.draws.get_wave(first.id) == first
    with pytest.raises(UsageError, match="no answer that is not in a wave yet from 2026-03-01 10:00"):
        store.draws.draw(ALL, 6)
    other = LabelPopulation(since=SINCE, until=NOON + timedelta(seconds=1), scorer="relevancy")
    clock.advance(seconds=1)
    assert store.draws.draw(other, 50).total.size == 10
    assert [wave.total.size for wave in store.draws.list_waves(scorer="relevancy")] == [10, 4, 6]
    assert store.draws.list_waves(limit=2) == store.draws.list_waves()[:2]
    assert store.draws.list_waves(scorer="faithfulness") == []


def test_people_who_draw_at_once_get_different_answers(store: TrackingStore) -> None:
    """Whoever is second draws again, without the answers of the first."""
    add_scored(store, [1.0] * 40)
    waves: list[LabelWave] = []
    ready = threading.Barrier(4)

    def draw() -> None:
        ready.wait()
        waves.append(store.draws.draw(ALL, 10))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [wave.total.size for wave in waves] == [10] * 4
    assert len({id_ for wave in waves for id_ in drawn(store, wave)}) == 40


class Meddling(np.random.Generator):
    """A generator that calls a function when it is first used, between reading the answers and writing the wave."""

    def __init__(self, meddle: Callable[[], Any]) -> None:
        super().__init__(np.random.PCG64(1))
        self._meddle = [meddle]

    def random(self, *given: Any, **named: Any) -> Any:
        while self._meddle:
            self._meddle.pop()()
        return super().random(*given, **named)


def test_an_answer_that_is_erased_or_deleted_while_it_is_drawn_is_not_in_the_wave(
    store: TrackingStore, clock: Clock
) -> None:
    """The wave has its full size nevertheless."""
    scored = add_scored(store, [1.0] * 3)
    clock.advance(hours=2)
    erase = lambda: store.retention.prune(texts_before=scored[1].started_at)  # noqa: E731 - a short name

    wave = store.draws.draw(ALL, 2, generator=Meddling(erase))
    assert drawn(store, wave).keys() == {scored[1].id, scored[2].id}
    population = LabelPopulation(since=SINCE, until=NOON + timedelta(seconds=1), scorer="relevancy")
    delete = lambda: store.retention.prune(before=scored[2].started_at)  # noqa: E731
    assert drawn(store, store.draws.draw(population, 1, generator=Meddling(delete))).keys() == {scored[2].id}


def test_answers_without_text_are_not_drawn(store: TrackingStore, clock: Clock) -> None:
    """If only old texts have been erased, the window begins with the first one that is left."""
    scored = add_scored(store, [1.0] * 6)
    clock.advance(hours=2)
    store.retention.prune(texts_before=scored[2].started_at)
    wave = store.draws.draw(ALL, 50)
    assert drawn(store, wave).keys() == {one.id for one in scored[2:]}
    assert wave.since == scored[2].started_at
    with transaction(store) as connection:
        connection.execute(text("UPDATE exchange SET erased_at = started_at WHERE id = :id"), {"id": scored[4].id})
    population = LabelPopulation(since=scored[2].started_at, until=NOON + timedelta(seconds=1), scorer="relevancy")
    assert drawn(store, store.draws.draw(population, 50)).keys() == {scored[2].id, scored[3].id, scored[5].id}


@pytest.mark.parametrize(("count", "message"), [(0, "1 to 500"), (501, "1 to 500"), (5, "no answer from")])
def test_a_wave_without_answers_cannot_be_drawn(sqlite_store: TrackingStore, count: int, message: str) -> None:
    """The error names the window, the scorer and the limit."""
    with pytest.raises(UsageError, match=message):
        sqlite_store.draws.draw(ALL, count)
    with pytest.raises(UsageError, match="no wave 'x'"):
        sqlite_store.draws.get_wave("x")


def test_answers_are_shown_one_after_another_and_labeled_by_name(store: TrackingStore, clock: Clock) -> None:
    """What people said is counted by state. Skipped answers are not replaced."""
    scored = {one.id: number / 6 for number, one in enumerate(add_scored(store, [0.5] * 6))}
    wave = store.draws.draw(ALL, 5)
    order = sorted(drawn(store, wave).values(), key=lambda row: row["position"])
    for place, verdict in enumerate(("answers", "partly", "does_not", "cannot_tell", "skipped"), start=1):
        assert store.draws.next_answer(wave.id) == (place, order[place - 1]["exchange_id"])
        clock.advance(seconds=1)
        store.draws.settle(wave.id, order[place - 1]["exchange_id"], verdict, user="Ada")  # type: ignore[arg-type]  # one of the verdicts

    assert store.draws.next_answer(wave.id) is None
    assert counts(store, wave) == DrawnCounts(labeled=3, cannot_tell=1, skipped=1)
    labels = store.draws.list_labels([wave.id])
    assert [label.label for label in labels] == [1.0, 0.5, 0.0]
    assert [label.exchange_id for label in labels] == [row["exchange_id"] for row in order[:3]]
    assert [label.value for label in labels] == pytest.approx([scored[label.exchange_id] for label in labels])
    assert [label.probability for label in labels] == pytest.approx([5 / 12] * 3)
    assert {(label.wave, label.service, label.route) for label in labels} == {(wave.id, "shop", "ask")}
    assert [label.created_at for label in labels] == [NOON + timedelta(seconds=n) for n in (1, 2, 3)]
    with pytest.raises(UsageError, match="not in the wave"):
        store.draws.settle(wave.id, next(iter(scored.keys() - drawn(store, wave).keys())), "answers")


def test_labels_of_two_people_on_one_answer_are_averaged(store: TrackingStore, clock: Clock) -> None:
    """A later label replaces one of the same person. A person who cannot tell does not remove a label of another."""
    add_scored(store, [1.0])
    wave = store.draws.draw(ALL, 1)
    answer = next_id(store, wave)
    for user, verdict in (("Ada", "does_not"), ("Ada", "answers"), ("Bo", "partly"), ("Cy", "cannot_tell")):
        clock.advance(seconds=1)
        store.draws.settle(wave.id, answer, verdict, user=user)  # type: ignore[arg-type]  # one of the verdicts

    (label,) = store.draws.list_labels([wave.id])
    assert (label.label, label.by_person) == (0.75, {"Ada": 1.0, "Bo": 0.5})
    assert label.created_at == NOON + timedelta(seconds=3)
    assert counts(store, wave) == DrawnCounts(labeled=1)


def test_undo_takes_back_what_the_same_person_said_last(store: TrackingStore, clock: Clock) -> None:
    """One answer at a time, until nothing is left. The answer is then the next one to be labeled."""
    add_scored(store, [1.0] * 4)
    wave = store.draws.draw(ALL, 4)
    said: list[str] = []
    for user, verdict in (("Ada", "answers"), ("Ada", "skipped"), ("Bo", "answers")):
        clock.advance(seconds=1)
        said.append(next_id(store, wave))
        store.draws.settle(wave.id, said[-1], verdict, user=user)  # type: ignore[arg-type]  # one of the verdicts

    assert store.draws.undo(wave.id, user="Ada") == said[1]
    assert next_id(store, wave) == said[1]
    assert store.draws.undo(wave.id, user="Ada") == said[0]
    assert store.draws.undo(wave.id, user="Ada") is None
    assert store.draws.undo(wave.id) is None
    assert counts(store, wave) == DrawnCounts(labeled=1, open=3)
    assert [label.by_person for label in store.draws.list_labels([wave.id])] == [{"Bo": 1.0}]


def test_undo_takes_back_the_last_label_even_if_another_person_labeled_the_answer_since(
    store: TrackingStore, clock: Clock
) -> None:
    """Each person's labels have an order of their own, and the other person's label stays."""
    add_scored(store, [1.0] * 2)
    wave = store.draws.draw(ALL, 2)
    store.draws.settle(wave.id, first := next_id(store, wave), "answers", user="Ada")
    second = next_id(store, wave)
    for user, answer in (("Ada", second), ("Bo", second), ("Bo", first)):
        clock.advance(seconds=1)
        store.draws.settle(wave.id, answer, "does_not", user=user)

    assert store.draws.undo(wave.id, user="Ada") == second
    labels = {label.exchange_id: label.by_person for label in store.draws.list_labels([wave.id])}
    assert labels == {first: {"Ada": 1.0, "Bo": 0.0}, second: {"Bo": 0.0}}
    assert [store.draws.undo(wave.id, user=user) for user in ("Bo", "Bo", "Ada", "Ada")] == [first, second, first, None]
    assert counts(store, wave) == DrawnCounts(open=2)


def test_undo_keeps_the_label_of_another_person(store: TrackingStore, clock: Clock) -> None:
    """The answer stays labeled."""
    add_scored(store, [1.0])
    wave = store.draws.draw(ALL, 1)
    answer = next_id(store, wave)
    for user in ("Ada", None):
        clock.advance(seconds=1)
        store.draws.settle(wave.id, answer, "does_not", user=user)

    assert store.draws.undo(wave.id) == answer
    assert counts(store, wave) == DrawnCounts(labeled=1)
    assert [label.by_person for label in store.draws.list_labels([wave.id])] == [{"Ada": 0.0}]


def test_a_label_that_nobody_asked_for_and_erased_text_change_no_label_of_a_wave(
    store: TrackingStore, clock: Clock
) -> None:
    """Open answers whose text is erased are counted as such, and not shown. They are not replaced."""
    scored = add_scored(store, [1.0] * 5)
    wave = store.draws.draw(ALL, 4)
    for _ in range(2):
        store.draws.settle(wave.id, next_id(store, wave), "answers", user="Ada")
    before = store.draws.list_labels([wave.id])
    store.labels.add_feedback(
        [Feedback(id=one.id, exchange_id=one.id, score=0.0, user="Ada", created_at=NOON) for one in scored]
    )
    assert store.draws.list_labels([wave.id]) == before
    assert counts(store, wave) == DrawnCounts(labeled=2, open=2)

    clock.advance(hours=2)
    store.retention.prune(texts_before=clock())

    assert store.draws.list_labels([wave.id]) == before
    assert counts(store, wave) == DrawnCounts(labeled=2, erased=2)
    assert (store.draws.get_wave(wave.id).total.size, store.draws.get_wave(wave.id).total.settled) == (4, 2)
    assert store.draws.next_answer(wave.id) is None


def test_labels_of_a_wave_do_not_change_which_answers_are_scored(store: TrackingStore) -> None:
    """A rule that scores answers with bad labels would otherwise change the weights of labeled answers alone."""
    add_scored(store, [1.0])
    wave = store.draws.draw(ALL, 1)
    store.draws.settle(wave.id, next_id(store, wave), "does_not")
    with transaction(store) as connection:
        connection.execute(text("UPDATE exchange SET sampling_reason = 'uniform'"))

    assert store.sampling.list_pending_feedback(9) == []
    assert [label.feedback.wave for label in store.labels.list_feedback()] == [wave.id]


def test_deleted_answers_leave_their_waves(store: TrackingStore, clock: Clock) -> None:
    """By age, and with the data of their user."""
    scored = [add_scored(store, [1.0], user=user)[0] for user in ("u1", "u2", "u3")]
    wave = store.draws.draw(ALL, 3)
    for one in scored:
        store.draws.settle(wave.id, one.id, "answers", user="u2")
    store.retention.forget(user="u1")
    assert counts(store, wave) == DrawnCounts(labeled=2)
    store.retention.forget(user="u2")
    assert drawn(store, wave).keys() == {scored[2].id}
    assert counts(store, wave) == DrawnCounts(open=1)
    assert drawn(store, wave)[scored[2].id]["settled_by"] is None
    clock.advance(hours=2)
    store.retention.prune(before=clock())
    assert store.draws.list_waves() == []


def test_forgetting_a_person_keeps_what_others_said(store: TrackingStore, clock: Clock) -> None:
    """The name is deleted also from answers that the person skipped."""
    add_scored(store, [1.0] * 2)
    wave = store.draws.draw(ALL, 2)
    skipped = next_id(store, wave)
    store.draws.settle(wave.id, skipped, "skipped", user="Ada")
    both = next_id(store, wave)
    for user in ("Bo", "Ada"):
        clock.advance(seconds=1)
        store.draws.settle(wave.id, both, "answers", user=user)

    store.retention.forget(user="Ada", dry_run=True)
    assert drawn(store, wave)[skipped]["settled_by"] == "Ada"
    store.retention.forget(user="Ada")

    assert counts(store, wave) == DrawnCounts(labeled=1, skipped=1)
    assert {row["settled_by"] for row in drawn(store, wave).values()} == {None}
    assert [label.by_person for label in store.draws.list_labels([wave.id])] == [{"Bo": 1.0}]


def test_an_answer_without_the_label_of_a_forgotten_person_is_open_again(store: TrackingStore, clock: Clock) -> None:
    """Even if somebody else could not judge it since, which had not taken the label away."""
    add_scored(store, [1.0] * 2)
    wave = store.draws.draw(ALL, 2)
    labeled = next_id(store, wave)
    for user, verdict in (("Ada", "answers"), ("Bo", "cannot_tell")):
        clock.advance(seconds=1)
        store.draws.settle(wave.id, labeled, verdict, user=user)
    store.retention.forget(user="Ada")
    assert counts(store, wave) == DrawnCounts(open=2)


def test_an_export_restores_waves_and_their_labels(sqlite_store: TrackingStore, store: TrackingStore) -> None:
    """They are the same in the other database, and restoring them twice changes nothing."""
    add_scored(store, [0.5] * 3)
    wave = store.draws.draw(ALL, 3)
    store.draws.settle(wave.id, next_id(store, wave), "partly", user="Ada")
    store.draws.settle(wave.id, next_id(store, wave), "skipped", user="Ada")
    records = load_records(store)
    assert sum(len(record.draws) for record in records) == 3
    for _ in range(2):
        sqlite_store.transfer.restore_records(records)

    assert sqlite_store.draws.list_waves() == [store.draws.get_wave(wave.id)]
    (restored,), (original,) = (one.draws.list_labels([wave.id]) for one in (sqlite_store, store))
    assert (restored.label, restored.probability, restored.by_person) == (0.5, original.probability, {"Ada": 0.5})


def test_archived_answers_stay_in_their_waves(filled: Copy) -> None:
    """Their labels are read from the archive, and a label can still be given, taken back or forgotten."""
    store, answers = filled.store, filled.exchanges
    population = LabelPopulation(since=answers[0].started_at, until=answers[-1].started_at, scorer="relevancy")
    wave = store.draws.draw(population, 6)
    for user in ("Ada", "Bo"):
        store.draws.settle(wave.id, next_id(store, wave), "answers", user=user)
    before = store.draws.list_labels([wave.id])

    archive(store, str(filled.folder))

    assert store.draws.list_labels([wave.id]) == before
    assert counts(store, wave) == DrawnCounts(labeled=2, open=4)
    late = next_id(store, wave)
    store.draws.settle(wave.id, late, "partly", user="Ada")
    assert [label.label for label in store.draws.list_labels([wave.id])] == [1.0, 1.0, 0.5]
    assert store.draws.undo(wave.id, user="Ada") == late
    store.draws.settle(wave.id, late, "cannot_tell", user="Ada")
    assert counts(store, wave) == DrawnCounts(labeled=2, cannot_tell=1, open=3)
    assert store.draws.list_labels([wave.id]) == before
    with pytest.raises(UsageError, match="no answer"):
        store.draws.draw(population, 6)

    owner = next(one.user for one in answers if one.id == late)
    store.retention.forget(user=owner)
    assert late not in drawn(store, wave)
    with transaction(store, read_only=True) as connection:
        assert not connection.execute(select(feedback).where(feedback.c.exchange_id == late)).all()
