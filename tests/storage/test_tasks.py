"""A task is done once, by one owner at a time, and never lost."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.storage import ScoringTask, TaskClaim, TrackingStore
from germane.storage.queue import tasks as claims

Make = Callable[..., Exchange]
Sampled = Callable[..., list[Exchange]]
LEASE = timedelta(seconds=60)
TWO = {"relevancy": "f1", "faithfulness": "f2"}


def scored(task: ScoringTask, value: float = 0.5, **given: Any) -> tuple[ScoringTask, Score]:
    """Return the task with a value for it."""
    return task, Score(scorer=task.scorer, fingerprint=task.fingerprint, value=value, **given)


def tasks_of(found: list[TaskClaim]) -> list[ScoringTask]:
    """Return all tasks of some claims."""
    return [task for claim in found for task in claim.tasks]


def test_whole_exchanges_are_claimed_oldest_first(store: TrackingStore, sampled: Sampled, make: Make) -> None:
    """The limit counts exchanges, and all ready tasks of one come together."""
    late, early, middle = sampled(make(2), make(0), make(1), scorers=TWO)

    found = store.queue.claim_tasks("a", TWO, limit=2, lease=LEASE)

    assert [claim.exchange for claim in found] == [early, middle]
    assert [[task.scorer for task in claim.tasks] for claim in found] == [["relevancy", "faithfulness"]] * 2
    assert [claim.exchange for claim in store.queue.claim_tasks("b", TWO, limit=9, lease=LEASE)] == [late]


def test_only_tasks_of_ones_own_scorers_are_claimed(store: TrackingStore, sampled: Sampled, make: Make) -> None:
    """Name and fingerprint both count; what is another's stays free for it."""
    both, other, older = sampled(make(1), scorers=TWO), make(2), make(0)
    sampled(other, scorers={"faithfulness": "f2"})
    sampled(older, scorers={"relevancy": "f0"})

    mine = store.queue.claim_tasks("a", {"relevancy": "f1"}, limit=9, lease=LEASE)

    assert [claim.exchange for claim in mine] == both
    assert [task.scorer for task in tasks_of(mine)] == ["relevancy"]
    assert store.queue.claim_tasks("a", {}, limit=9, lease=LEASE) == []
    theirs = store.queue.claim_tasks("b", {"faithfulness": "f2"}, limit=9, lease=LEASE)
    assert [claim.exchange for claim in theirs] == [*both, other]


def test_an_exchange_is_claimed_by_whichever_of_its_tasks_is_due_first(
    store: TrackingStore, sampled: Sampled, make: Make, clock: Any
) -> None:
    """Tasks that wait behind a sibling do not keep the queue from moving, however many they are."""
    sampled(*(make(number) for number in range(3)), scorers=TWO)
    first = [
        task for task in tasks_of(store.queue.claim_tasks("a", TWO, limit=3, lease=LEASE)) if task.scorer == "relevancy"
    ]
    until = clock.now + timedelta(seconds=30)
    store.queue.postpone_tasks("a", first, until=until, reason=UnscoredReason.JUDGE_TIMEOUT, error="slow")
    store.queue.release_tasks("a")
    clock.advance(seconds=30)

    found = [store.queue.claim_tasks(owner, TWO, limit=1, lease=LEASE) for owner in ("b", "c", "d")]

    assert [len(tasks_of(claims)) for claims in found] == [2, 2, 2]


def test_a_claimed_task_knows_its_history(store: TrackingStore, sampled: Sampled, make: Make, clock: Any) -> None:
    """Attempts count claims, and the age counts from the first time it was pending."""
    [exchange] = sampled(make())
    store.queue.claim_tasks("a", TWO, limit=1, lease=LEASE)
    began = clock.now
    clock.advance(seconds=61)

    [claim] = store.queue.claim_tasks("b", TWO, limit=1, lease=LEASE)

    [task] = claim.tasks
    assert (task.exchange_id, task.claims, task.first_pending_at, task.retries) == (exchange.id, 2, began, 0)


def test_a_task_knows_how_often_it_was_tried_in_vain(
    store: TrackingStore, sampled: Sampled, make: Make, clock: Any
) -> None:
    """By whatever process, so that waits grow on after a restart; a task that was handed back was not tried."""
    sampled(make())
    tries = []
    for owner in ("a", "b", "c"):
        [task] = tasks_of(store.queue.claim_tasks(owner, TWO, limit=1, lease=LEASE))
        tries.append((task.retries, task.claims))
        store.queue.postpone_tasks(owner, [task], until=clock.now, reason=UnscoredReason.JUDGE_TIMEOUT, error="slow")
        store.queue.claim_tasks(owner, TWO, limit=1, lease=LEASE)
        store.queue.release_tasks(owner)

    assert tries == [(0, 1), (1, 1), (2, 1)]


def test_a_task_is_completed_exactly_once(store: TrackingStore, sampled: Sampled, make: Make) -> None:
    """The second time, and twice in one call, nothing is written and nothing is returned."""
    sampled(make())
    [task] = tasks_of(store.queue.claim_tasks("a", TWO, limit=1, lease=LEASE))

    first = store.queue.complete_tasks("a", [scored(task, 0.25), scored(task, 0.75)])
    second = store.queue.complete_tasks("a", [scored(task, 0.75)])

    assert (first, second) == ([scored(task, 0.25)], [])
    assert [found.score.value for found in store.answers.worst()] == [0.25]


def test_nobody_completes_what_another_owner_holds(store: TrackingStore, sampled: Sampled, make: Make) -> None:
    """Neither before nor after the holder has."""
    sampled(make())
    [task] = tasks_of(store.queue.claim_tasks("a", TWO, limit=1, lease=LEASE))

    assert store.queue.complete_tasks("b", [scored(task)]) == []
    assert store.answers.counts().running == 1


def test_a_late_owner_is_refused_after_its_lease_was_taken(
    store: TrackingStore, sampled: Sampled, make: Make, clock: Any
) -> None:
    """An expired lease goes to the next owner, whose result is the one that counts."""
    sampled(make())
    [old] = tasks_of(store.queue.claim_tasks("a", TWO, limit=1, lease=LEASE))
    assert store.queue.claim_tasks("b", TWO, limit=1, lease=LEASE) == []
    clock.advance(seconds=60)

    [new] = tasks_of(store.queue.claim_tasks("b", TWO, limit=1, lease=LEASE))

    assert store.queue.complete_tasks("a", [scored(old, 0.1)]) == []
    assert store.queue.complete_tasks("b", [scored(new, 0.9)]) == [scored(new, 0.9)]
    assert [found.score.value for found in store.answers.worst()] == [0.9]


@pytest.mark.parametrize("migrated_url", ["postgresql"], indirect=True)
def test_an_owner_that_is_late_by_a_moment_is_refused_too(
    store: TrackingStore, sampled: Sampled, make: Make, clock: Any
) -> None:
    """A result that waits while its task is being taken finds it another's."""
    sampled(make())
    [old] = tasks_of(store.queue.claim_tasks("a", TWO, limit=1, lease=LEASE))
    clock.advance(seconds=60)
    late: list[Any] = []
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    thread = threading.Thread(target=lambda: late.append(store.queue.complete_tasks("a", [scored(old)])))

    with store._database.write() as connection:
        assert len(claims.claim_tasks(connection, "p", "b", TWO, 1, LEASE, clock.now)) == 1
        thread.start()
        while not connection.exec_driver_sql(waiting).scalar():
            assert thread.is_alive()
            connection.exec_driver_sql("SELECT pg_stat_clear_snapshot()")
    thread.join()

    assert late == [[]]


def test_an_owner_may_be_late_when_nobody_minds(store: TrackingStore, sampled: Sampled, make: Make, clock: Any) -> None:
    """A lease that has run out and was not taken by another owner still counts."""
    sampled(make())
    [task] = tasks_of(store.queue.claim_tasks("a", TWO, limit=1, lease=LEASE))
    clock.advance(hours=1)

    assert len(store.queue.complete_tasks("a", [scored(task)])) == 1


def test_a_score_keeps_all_it_is_made_of(store: TrackingStore, sampled: Sampled, make: Make, clock: Any) -> None:
    """Details are any JSON; NaN in them becomes null, and objects their text."""
    sampled(make())
    [task] = tasks_of(store.queue.claim_tasks("a", TWO, limit=1, lease=LEASE))
    circle: list[Any] = []
    circle.append(circle)
    details = {"questions": ["a\0", {"b": [1, 2.5, None, True]}], "nan": float("nan"), 1: {"deep": (1, 2)}}
    given = scored(
        task, 0.75, label="mostly_relevant", explanation="why\ud800", details=details, judge="j", embedder="e", input_tokens=10,
        output_tokens=2, cost=0.001, latency=1.5, scored_at=clock.now,
    )  # fmt: skip

    store.queue.complete_tasks("a", [given])

    [found] = store.answers.worst()
    assert found.score.explanation == "why\ufffd"
    assert found.score.details == {
        "questions": ["a\ufffd", {"b": [1, 2.5, None, True]}],
        "nan": None,
        "1": {"deep": [1, 2]},
    }
    for name in ("value", "label", "judge", "embedder", "input_tokens", "output_tokens", "cost", "latency"):
        assert getattr(found.score, name) == getattr(given[1], name)
    assert found.score.scored_at == clock.now


class Unspeakable:
    """An object of a user's that has no text."""

    def __str__(self) -> str:
        raise KeyError


def nested(depth: int) -> list[Any]:
    """Return lists in lists."""
    lists: list[Any] = []
    for _ in range(depth):
        lists = [lists]
    return lists


@pytest.mark.parametrize("value", [Unspeakable(), {Unspeakable(): 1}, nested(100_000)])
def test_details_that_no_json_can_hold_do_not_stop_a_score(
    store: TrackingStore, sampled: Sampled, make: Make, value: Any
) -> None:
    """A circle, an abyss, or an object that raises is noted as unreadable."""
    sampled(make(), make())
    first, second = tasks_of(store.queue.claim_tasks("a", TWO, limit=2, lease=LEASE))
    circle: dict[str, Any] = {}
    circle["self"] = circle

    store.queue.complete_tasks("a", [scored(first, details=circle), scored(second, details={"value": value})])

    assert ["unreadable" in found.score.details for found in store.answers.worst()] == [True, True]


def test_details_that_can_be_read_once_are_left_unread(store: TrackingStore, sampled: Sampled, make: Make) -> None:
    """An endless iterator does not hang whoever writes it."""
    sampled(make())
    [task] = tasks_of(store.queue.claim_tasks("a", TWO, limit=1, lease=LEASE))

    store.queue.complete_tasks("a", [scored(task, details={"endless": itertools.count()})])

    assert store.answers.worst()[0].score.details == {"endless": "count(0)"}


@pytest.mark.parametrize(
    ("reason", "state"), [(UnscoredReason.UNPARSABLE, "failed"), (UnscoredReason.MISSING_INPUT, "skipped")]
)
def test_an_absence_is_a_state_and_no_row(
    store: TrackingStore, sampled: Sampled, make: Make, reason: UnscoredReason, state: str
) -> None:
    """Only values are rows of the table score."""
    sampled(make())
    [task] = tasks_of(store.queue.claim_tasks("a", TWO, limit=1, lease=LEASE))
    absent = Score(scorer=task.scorer, fingerprint=task.fingerprint, reason=reason, explanation="said 'banana'")

    assert store.queue.complete_tasks("a", [(task, absent)]) == [(task, absent)]

    counts = store.answers.counts()
    assert (counts.scores, getattr(counts, state)) == (0, 1)
    assert {**counts.failed_reasons, **counts.skipped_reasons} == {reason: 1}


def test_a_postponed_task_waits_for_its_time(store: TrackingStore, sampled: Sampled, make: Make, clock: Any) -> None:
    """And is somebody's again from then on; only its holder may postpone it."""
    sampled(make())
    [task] = tasks_of(store.queue.claim_tasks("a", TWO, limit=1, lease=LEASE))
    until = clock.now + timedelta(minutes=5)
    store.queue.postpone_tasks("b", [task], until=until, reason=UnscoredReason.JUDGE_TIMEOUT, error="not mine")
    assert store.answers.counts().running == 1

    store.queue.postpone_tasks("a", [task], until=until, reason=UnscoredReason.JUDGE_TIMEOUT, error="slow\0")

    assert store.answers.counts().pending == 1
    assert store.queue.claim_tasks("b", TWO, limit=1, lease=LEASE) == []
    clock.advance(minutes=5)
    assert len(store.queue.claim_tasks("b", TWO, limit=1, lease=LEASE)) == 1


def test_what_is_released_was_never_claimed(store: TrackingStore, sampled: Sampled, make: Make) -> None:
    """All that an owner holds goes back, at once and without counting as an attempt."""
    sampled(make(0), make(1), scorers=TWO)
    store.queue.claim_tasks("a", TWO, limit=1, lease=LEASE)
    store.queue.claim_tasks("b", TWO, limit=1, lease=LEASE)

    assert (store.queue.release_tasks("a"), store.queue.release_tasks("a")) == (2, 0)

    [claim] = store.queue.claim_tasks("c", TWO, limit=9, lease=LEASE)
    assert [task.claims for task in claim.tasks] == [1, 1]


def test_threads_never_claim_the_same_task(store: TrackingStore, sampled: Sampled, make: Make) -> None:
    """Four owners at once get every exchange, each one whole and once."""
    sampled(*(make(minute) for minute in range(60)), scorers=TWO)
    taken: list[TaskClaim] = []

    def work(owner: str) -> None:
        while found := store.queue.claim_tasks(owner, TWO, limit=3, lease=LEASE):
            taken.extend(found)

    threads = [threading.Thread(target=work, args=(f"owner-{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({claim.exchange.id for claim in taken}) == len(taken) == 60
    assert [len(claim.tasks) for claim in taken] == [2] * 60


WORKER = """
import json, sys
from datetime import timedelta
from germane.score import Score
from germane.storage import TrackingStore
store, owner = TrackingStore(sys.argv[1]), sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
done = []
while claims := store.queue.claim_tasks(owner, {"relevancy": "f1", "faithfulness": "f2"}, limit=2, lease=timedelta(hours=1)):
    results = [(task, Score(scorer=task.scorer, fingerprint=task.fingerprint, value=0.5))
               for claim in claims for task in claim.tasks]
    done += [task.id for task, _ in store.queue.complete_tasks(owner, results)]
print(json.dumps(done))
store.close()
"""


def start_worker(url: str, owner: str, script: str = WORKER) -> subprocess.Popen[str]:
    """Start a process that waits for a line before it works."""
    command = [sys.executable, "-c", script, url, owner]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    assert worker.stdout.readline() == "ready\n"
    return worker


def test_processes_never_do_the_same_task(
    store: TrackingStore, sampled: Sampled, make: Make, migrated_url: str
) -> None:
    """Three real processes at once do each task once, and the counts agree."""
    sampled(*(make(-minute) for minute in range(40)), scorers=TWO)
    workers = [start_worker(migrated_url, f"owner-{number}") for number in range(3)]
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()

    done = [task for worker in workers for task in json.loads(worker.communicate(timeout=60)[0])]

    assert len(set(done)) == len(done) == 80
    assert (store.answers.counts().done, store.answers.counts().scores) == (80, 80)
    assert all(one.seen == one.scored == 40 for one in store.trends.coverage())


KILLED = """
import sys
from datetime import timedelta
from germane.storage import TrackingStore
store = TrackingStore(sys.argv[1])
print("ready", flush=True)
store.queue.claim_tasks(sys.argv[2], {"relevancy": "f1"}, limit=9, lease=timedelta(seconds=60))
print("claimed", flush=True)
sys.stdin.readline()
"""


def test_what_a_killed_process_held_is_done_by_another(
    store: TrackingStore, sampled: Sampled, make: Make, migrated_url: str, clock: Any
) -> None:
    """kill -9 costs the time of the lease and nothing else."""
    sampled(make(-600))
    worker = start_worker(migrated_url, "killed", KILLED)
    assert worker.stdout is not None
    assert worker.stdout.readline() == "claimed\n"
    worker.send_signal(signal.SIGKILL)
    worker.communicate()
    assert store.answers.counts().running == 1
    clock.advance(days=3650)  # the process went by the real clock

    [task] = tasks_of(store.queue.claim_tasks("b", TWO, limit=1, lease=LEASE))

    assert len(store.queue.complete_tasks("b", [scored(task)])) == 1


BEGINNING = """
import os, signal, sys
from datetime import timedelta
from germane.storage import TrackingStore
store = TrackingStore(sys.argv[1])
print("ready", flush=True)
for claim in store.queue.claim_tasks(sys.argv[2], {"relevancy": "f1"}, limit=9, lease=timedelta()):
    if claim.exchange.question == "deadly":
        os.kill(os.getpid(), signal.SIGKILL)
    store.queue.release_tasks(sys.argv[2])
"""


def test_an_exchange_that_kills_whoever_scores_it_ends_as_failed(
    store: TrackingStore, sampled: Sampled, make: Make, migrated_url: str
) -> None:
    """Begun five times, each time by a process that did not survive it, it is given up, and blocks nobody."""
    sampled(make(-600, question="deadly"))
    for number in range(claims.MAX_CLAIMS):
        killed = start_worker(migrated_url, f"killed-{number}", BEGINNING)
        killed.communicate(timeout=60)
        assert killed.returncode == -signal.SIGKILL
    [harmless] = sampled(make(-599))
    real = TrackingStore(migrated_url)

    found = real.queue.claim_tasks("a", TWO, limit=9, lease=LEASE)

    real.close()
    assert [claim.exchange for claim in found] == [harmless]
    assert store.answers.counts().failed_reasons == {UnscoredReason.SCORER_ERROR: 1}
    assert errors(store) == ["scoring was started 5 times and the process ended each time"]
    [coverage] = store.trends.coverage()
    assert (coverage.seen, coverage.pending, coverage.failed) == (2, 1, {"scorer_error": 1})


def errors(store: TrackingStore) -> list[str]:
    """Return what is told of tasks that ended without a score."""
    with store._database.read() as connection:
        query = "SELECT error FROM scoring_task WHERE error IS NOT NULL AND not_before IS NULL"
        return list(connection.exec_driver_sql(query).scalars())


def test_what_stood_in_the_way_before_is_told_with_the_end(
    store: TrackingStore, sampled: Sampled, make: Make, clock: Any
) -> None:
    """The last reason is kept beside how often it was begun; claims that were handed back do not count."""
    sampled(make())
    for _ in range(claims.MAX_CLAIMS):
        tasks = tasks_of(store.queue.claim_tasks("a", TWO, limit=1, lease=LEASE))
        store.queue.postpone_tasks("a", tasks, until=clock.now, reason=UnscoredReason.JUDGE_TIMEOUT, error="no reply")
    for _ in range(claims.MAX_CLAIMS):
        assert len(store.queue.claim_tasks("b", TWO, limit=1, lease=LEASE)) == 1
        clock.advance(seconds=60)

    assert store.queue.claim_tasks("b", TWO, limit=1, lease=LEASE) == []

    assert errors(store) == [
        "scoring was started 5 times and the process ended each time; before that: judge_timeout: no reply"
    ]


def test_a_sibling_of_what_is_given_up_is_scored(
    store: TrackingStore, sampled: Sampled, make: Make, clock: Any
) -> None:
    """Only the task that ended with its process each time is; the same exchange's others are still claimed."""
    sampled(make(), scorers=TWO)
    for _ in range(claims.MAX_CLAIMS):
        store.queue.claim_tasks("a", {"relevancy": "f1"}, limit=1, lease=LEASE)
        clock.advance(seconds=60)

    [claim] = store.queue.claim_tasks("b", TWO, limit=1, lease=LEASE)

    assert [task.scorer for task in claim.tasks] == ["faithfulness"]
