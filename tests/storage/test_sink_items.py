"""What is read from the database and the archive for sinks."""

from __future__ import annotations

import shutil
from contextlib import closing
from datetime import timedelta

from tests.storage.archive_templates import POSTGRESQL_IS_SLOW, Copy
from tests.storage.archiving import archive

from germane.annotation import Feedback
from germane.storage import DeliveryOutcome, LabelPopulation, TrackingStore, sink_queue


@POSTGRESQL_IS_SLOW
def test_archived_answers_have_the_same_scores_and_labels(filled: Copy) -> None:
    """A label that is given after archiving is written with what was stored before."""
    store, ids = filled.store, [each.id for each in filled.exchanges]
    before = store.sinks.load(ids)
    written = [item for item in before.values() if item is not None and item.scores and item.attributes]
    assert len(written) > 1

    archive(store, str(filled.folder), has_text=True)
    assert store.sinks.load([*ids, "unknown"]) == before
    late = written[0].exchange_id
    store.labels.add_feedback([Feedback(id="late", exchange_id=late, score=0.5, created_at=store.now())])
    item = store.sinks.load([late])[late]

    assert item is not None
    assert (item.scores, [label.id for label in item.labels][-1]) == (written[0].scores, "late")

    shutil.rmtree(filled.folder)
    assert store.sinks.load([late]) == {}


@POSTGRESQL_IS_SLOW
def test_a_label_that_is_taken_back_makes_the_previous_one_of_the_person_count(filled: Copy) -> None:
    """Its exchange is queued again. Each person has one label."""
    answers, queue = filled.exchanges, sink_queue("there", batch_size=10)
    with closing(TrackingStore(filled.url, sinks=["there"])) as store:
        population = LabelPopulation(since=answers[0].started_at, until=answers[-1].started_at, scorer="relevancy")
        wave = store.draws.draw(population, 1)
        drawn = store.draws.next_answer(wave.id)
        assert drawn is not None

        def deliver() -> list[float]:
            (claimed,) = store.outbox.claim(queue, "me", lease=timedelta(minutes=1))
            store.outbox.record_attempt(queue, "me", {claimed.id: DeliveryOutcome()})
            item = store.sinks.load([drawn[1]])[drawn[1]]
            return [] if item is None else [label.score for label in item.labels if label.user == "Ada"]

        earlier = Feedback(id="earlier", exchange_id=drawn[1], score=0.0, user="Ada", created_at=answers[0].started_at)
        store.labels.add_feedback([earlier])
        assert deliver() == [0.0]
        store.draws.settle(wave.id, drawn[1], "answers", user="Ada")
        assert deliver() == [1.0]
        store.draws.undo(wave.id, user="Ada")
        assert deliver() == [0.0]
        assert store.draws.undo(wave.id, user="Ada") is None
