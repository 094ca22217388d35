"""Scoring tasks: claimed by one owner at a time, completed once, and never lost."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event

from germane.exchange import Exchange
from germane.score import Score, UnscoredReason
from germane.storage import ScoringTask, TaskClaim, TrackingStore
from germane.storage.db import leases
from germane.storage.db.tables import scoring_task
from germane.storage.queue import store_tasks as claims
from germane.testing import engine_of, transaction

Make = Callable[..., Exchange]
Sampled = Callable[..., list[Exchange]]
LEASE = timedelta(seconds=60)
TWO_SCORERS = {"relevancy": "f1", "faithfulness": "f2"}
CRASH_ERROR = "scoring was attempted 5 times, but the process exited each time before finishing"


def completed(task: ScoringTask, value: float = 0.5, **given: Any) -> tuple[ScoringTask, Score]:
    """Return the task with its score."""
    return task, Score(scorer=task.scorer, fingerprint=task.fingerprint, value=value, **given)


def tasks_of(found: list[TaskClaim]) -> list[ScoringTask]:
    """Return all tasks in the given claims."""
    return [task for claim in found for task in claim.tasks]


def test_claims_return_whole_exchanges_oldest_first(store: TrackingStore, sampled: Sampled, make: Make) -> None:
    """The limit counts exchanges; all ready tasks of an exchange are claimed together."""
    late, early, middle = sampled(make(2), make(0), make(1), scorers=TWO_SCORERS)

    claims = store.queue.claim_tasks("a", TWO_SCORERS, limit=2, lease=LEASE)

    assert [claim.exchange for claim in claims] == [early, middle]
    assert [[task.scorer for task in claim.tasks] for claim in claims] == [["relevancy", "faithfulness"]] * 2
    assert [claim.exchange for claim in store.queue.claim_tasks("b", TWO_SCORERS, limit=9, lease=LEASE)] == [late]


def test_claimed_tasks_match_the_scorer_name_and_fingerprint(
    store: TrackingStore, sampled: Sampled, make: Make
) -> None:
    """Tasks of other scorers stay available to other owners."""
    both, other, older = sampled(make(1), scorers=TWO_SCORERS), make(2), make(0)
    sampled(other, scorers={"faithfulness": "f2"})
    sampled(older, scorers={"relevancy": "f0"})

    mine = store.queue.claim_tasks("a", {"relevancy": "f1"}, limit=9, lease=LEASE)

    assert [claim.exchange for claim in mine] == both
    assert [task.scorer for task in tasks_of(mine)] == ["relevancy"]
    assert store.queue.claim_tasks("a", {}, limit=9, lease=LEASE) == []
    other_claims = store.queue.claim_tasks("b", {"faithfulness": "f2"}, limit=9, lease=LEASE)
    assert [claim.exchange for claim in other_claims] == [*both, other]


def test_postponed_sibling_tasks_do_not_block_the_queue(
    store: TrackingStore, sampled: Sampled, make: Make, clock: Any
) -> None:
    """An exchange is claimed as soon as one of its tasks is due."""
    sampled(*(make(number) for number in range(3)), scorers=TWO_SCORERS)
    first = [
        task
        for task in tasks_of(store.queue.claim_tasks("a", TWO_SCORERS, limit=3, lease=LEASE))
        if task.scorer == "relevancy"
    ]
    until = clock.now + timedelta(seconds=30)
    store.queue.postpone_tasks("a", first, until=until, reason=UnscoredReason.JUDGE_TIMEOUT, error="slow")
    store.queue.release_tasks("a")
    clock.advance(seconds=30)

    found = [store.queue.claim_tasks(owner, TWO_SCORERS, limit=1, lease=LEASE) for owner in ("b", "c", "d")]

    assert [len(tasks_of(claims)) for claims in found] == [2, 2, 2]


def test_a_claimed_task_contains_its_claim_count_and_first_pending_time(
    store: TrackingStore, sampled: Sampled, make: Make, clock: Any
) -> None:
    """A claim after an expired lease increments the count; the age is measured from when the task was first pending."""
    [exchange] = sampled(make())
    store.queue.claim_tasks("a", TWO_SCORERS, limit=1, lease=LEASE)
    began = clock.now
    clock.advance(seconds=61)

    [claim] = store.queue.claim_tasks("b", TWO_SCORERS, limit=1, lease=LEASE)

    [task] = claim.tasks
    assert (task.exchange_id, task.claims, task.first_pending_at, task.retries) == (exchange.id, 2, began, 0)


def test_retries_are_counted_across_worker_processes(
    store: TrackingStore, sampled: Sampled, make: Make, clock: Any
) -> None:
    """Postponing counts as a retry, so backoff survives a restart; releasing does not."""
    sampled(make())
    tries = []
    for owner in ("a", "b", "c"):
        [task] = tasks_of(store.queue.claim_tasks(owner, TWO_SCORERS, limit=1, lease=LEASE))
        tries.append((task.retries, task.claims))
        store.queue.postpone_tasks(owner, [task], until=clock.now, reason=UnscoredReason.JUDGE_TIMEOUT, error="slow")
        store.queue.claim_tasks(owner, TWO_SCORERS, limit=1, lease=LEASE)
        store.queue.release_tasks(owner)

    assert tries == [(0, 1), (1, 1), (2, 1)]


def test_each_task_is_completed_exactly_once(store: TrackingStore, sampled: Sampled, make: Make) -> None:
    """Duplicate results in one call or a later one are neither written nor returned."""
    sampled(make())
    [task] = tasks_of(store.queue.claim_tasks("a", TWO_SCORERS, limit=1, lease=LEASE))

    first = store.queue.complete_tasks("a", [completed(task, 0.25), completed(task, 0.75)])
    second = store.queue.complete_tasks("a", [completed(task, 0.75)])

    assert (first, second) == ([completed(task, 0.25)], [])
    assert [found.score.value for found in store.answers.worst()] == [0.25]


def test_tasks_that_end_alike_are_closed_together(store: TrackingStore, sampled: Sampled, make: Make) -> None:
    """With a statement for each task, PostgreSQL's server needs a fifth more CPU time."""
    sampled(*(make(minute) for minute in range(20)), scorers=TWO_SCORERS)
    tasks = tasks_of(store.queue.claim_tasks("a", TWO_SCORERS, limit=20, lease=LEASE))
    failed = Score(scorer="faithfulness", fingerprint="f2", reason=UnscoredReason.UNPARSABLE, explanation="no JSON")
    results = [completed(task) if task.scorer == "relevancy" else (task, failed) for task in tasks]
    closed: list[Any] = []

    def record(*call: Any) -> None:
        if call[2].startswith("UPDATE scoring_task"):
            closed.extend(call[3] if call[5] else [call[3]])

    event.listen(engine_of(store), "before_cursor_execute", record)

    assert store.queue.complete_tasks("a", results) == results
    assert len(closed) == 2
    assert load_task_errors(store) == ["no JSON"] * 20


@pytest.mark.parametrize("migrated_url", ["postgresql"], indirect=True)
def test_completing_a_task_during_its_takeover_is_rejected(
    store: TrackingStore, sampled: Sampled, make: Make, clock: Any
) -> None:
    """A result that waits for the lock of the new claim is dropped."""
    sampled(make())
    [old] = tasks_of(store.queue.claim_tasks("a", TWO_SCORERS, limit=1, lease=LEASE))
    clock.advance(seconds=60)
    late: list[Any] = []
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    thread = threading.Thread(target=lambda: late.append(store.queue.complete_tasks("a", [completed(old)])))

    with transaction(store) as connection:
        assert connection.execute(leases.claim(scoring_task, owner="b", until=clock.now + LEASE)).rowcount > 0
        thread.start()
        while not connection.exec_driver_sql(waiting).scalar():
            assert thread.is_alive()
            connection.exec_driver_sql("SELECT pg_stat_clear_snapshot()")
    thread.join()

    assert late == [[]]


def test_a_score_is_stored_with_all_of_its_fields(
    store: TrackingStore, sampled: Sampled, make: Make, clock: Any
) -> None:
    """Details can be any JSON; NaN becomes null, and unstorable characters are replaced."""
    sampled(make())
    [task] = tasks_of(store.queue.claim_tasks("a", TWO_SCORERS, limit=1, lease=LEASE))
    circle: list[Any] = []
    circle.append(circle)
    details = {"questions": ["a\0", {"b": [1, 2.5, None, True]}], "nan": float("nan"), 1: {"deep": (1, 2)}}
    given = completed(
        task, 0.75, label="mostly_relevant", explanation="why\ud800", details=details, judge="j", embedder="e",
        input_tokens=10, output_tokens=2, cost=0.001, latency=1.5, scored_at=clock.now,
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


class RaisingStr:
    """An object whose ``str()`` raises."""

    def __str__(self) -> str:
        raise KeyError


def nested_lists(depth: int) -> list[Any]:
    """Return lists nested to the given depth."""
    lists: list[Any] = []
    for _ in range(depth):
        lists = [lists]
    return lists


@pytest.mark.parametrize("create", [RaisingStr, lambda: {RaisingStr(): 1}, lambda: nested_lists(100_000)])
def test_unserializable_details_do_not_lose_the_score(
    store: TrackingStore, sampled: Sampled, make: Make, create: Callable[[], Any]
) -> None:
    """Details that are cyclic, nested too deeply, or raise errors are marked as unreadable."""
    sampled(make(), make())
    first, second = tasks_of(store.queue.claim_tasks("a", TWO_SCORERS, limit=2, lease=LEASE))
    circle: dict[str, Any] = {}
    circle["self"] = circle

    store.queue.complete_tasks("a", [completed(first, details=circle), completed(second, details={"value": create()})])

    assert ["unreadable" in found.score.details for found in store.answers.worst()] == [True, True]


def test_iterators_in_details_are_not_consumed(store: TrackingStore, sampled: Sampled, make: Make) -> None:
    """An endless iterator is stored as its text and does not hang the writer."""
    sampled(make())
    [task] = tasks_of(store.queue.claim_tasks("a", TWO_SCORERS, limit=1, lease=LEASE))

    store.queue.complete_tasks("a", [completed(task, details={"endless": itertools.count()})])

    assert store.answers.worst()[0].score.details == {"endless": "count(0)"}


@pytest.mark.parametrize(
    ("reason", "state"), [(UnscoredReason.UNPARSABLE, "failed"), (UnscoredReason.MISSING_INPUT, "skipped")]
)
def test_unscored_result_sets_the_task_state_without_a_score_row(
    store: TrackingStore, sampled: Sampled, make: Make, reason: UnscoredReason, state: str
) -> None:
    """Only values are stored in the score table."""
    sampled(make())
    [task] = tasks_of(store.queue.claim_tasks("a", TWO_SCORERS, limit=1, lease=LEASE))
    absent = Score(scorer=task.scorer, fingerprint=task.fingerprint, reason=reason, explanation="said 'banana'")

    assert store.queue.complete_tasks("a", [(task, absent)]) == [(task, absent)]

    counts = store.answers.counts()
    assert (counts.scores, getattr(counts, state)) == (0, 1)
    assert {**counts.failed_reasons, **counts.skipped_reasons} == {reason: 1}


def test_a_postponed_task_is_not_claimed_until_it_is_due(
    store: TrackingStore, sampled: Sampled, make: Make, clock: Any
) -> None:
    """Only the owner of a task can postpone it; any owner can claim it once it is due."""
    sampled(make())
    [task] = tasks_of(store.queue.claim_tasks("a", TWO_SCORERS, limit=1, lease=LEASE))
    until = clock.now + timedelta(minutes=5)
    store.queue.postpone_tasks("b", [task], until=until, reason=UnscoredReason.JUDGE_TIMEOUT, error="not mine")
    assert store.answers.counts().running == 1

    store.queue.postpone_tasks("a", [task], until=until, reason=UnscoredReason.JUDGE_TIMEOUT, error="slow\0")

    assert store.answers.counts().pending == 1
    assert store.queue.claim_tasks("b", TWO_SCORERS, limit=1, lease=LEASE) == []
    clock.advance(minutes=5)
    assert len(store.queue.claim_tasks("b", TWO_SCORERS, limit=1, lease=LEASE)) == 1


def test_releasing_tasks_does_not_count_as_a_claim(store: TrackingStore, sampled: Sampled, make: Make) -> None:
    """Released tasks can be claimed immediately."""
    sampled(make(0), make(1), scorers=TWO_SCORERS)
    store.queue.claim_tasks("a", TWO_SCORERS, limit=1, lease=LEASE)
    store.queue.claim_tasks("b", TWO_SCORERS, limit=1, lease=LEASE)

    assert (store.queue.release_tasks("a"), store.queue.release_tasks("a")) == (2, 0)

    [claim] = store.queue.claim_tasks("c", TWO_SCORERS, limit=9, lease=LEASE)
    assert [task.claims for task in claim.tasks] == [1, 1]


def test_threads_never_claim_the_same_task(store: TrackingStore, sampled: Sampled, make: Make) -> None:
    """Four concurrent owners claim every exchange completely and once."""
    sampled(*(make(minute) for minute in range(60)), scorers=TWO_SCORERS)
    taken: list[TaskClaim] = []

    def work(owner: str) -> None:
        while found := store.queue.claim_tasks(owner, TWO_SCORERS, limit=3, lease=LEASE):
            taken.extend(found)

    threads = [threading.Thread(target=work, args=(f"owner-{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({claim.exchange.id for claim in taken}) == len(taken) == 60
    assert [len(claim.tasks) for claim in taken] == [2] * 60


def start_worker(url: str, owner: str, script: str) -> subprocess.Popen[str]:
    """Start a process that prints "ready" and then waits for a line."""
    command = [sys.executable, "-c", script, url, owner]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    assert worker.stdout.readline() == "ready\n"
    return worker


CLAIM_AND_DIE = """
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


@pytest.mark.slow
def test_a_task_whose_scorer_crashes_the_process_fails_after_five_claims(
    store: TrackingStore, sampled: Sampled, make: Make, migrated_url: str
) -> None:
    """A task whose process died five times fails and does not block other tasks."""
    sampled(make(-600, question="deadly"))
    for number in range(claims.MAX_CLAIMS):
        killed = start_worker(migrated_url, f"killed-{number}", CLAIM_AND_DIE)
        killed.communicate(timeout=60)
        assert killed.returncode == -signal.SIGKILL
    [harmless] = sampled(make(-599))
    real = TrackingStore(migrated_url)

    found = real.queue.claim_tasks("a", TWO_SCORERS, limit=9, lease=LEASE)

    real.close()
    assert [claim.exchange for claim in found] == [harmless]
    assert store.answers.counts().failed_reasons == {UnscoredReason.SCORER_ERROR: 1}
    assert load_task_errors(store) == [CRASH_ERROR]
    [coverage] = store.trends.coverage()
    assert (coverage.seen, coverage.pending, coverage.failed) == (2, 1, {"scorer_error": 1})


def load_task_errors(store: TrackingStore) -> list[str]:
    """Return the errors of tasks that ended without a score."""
    with transaction(store, read_only=True) as connection:
        query = "SELECT error FROM scoring_task WHERE error IS NOT NULL AND due_at IS NULL"
        return list(connection.exec_driver_sql(query).scalars())


def test_the_error_after_five_claims_includes_the_last_retry_reason(
    store: TrackingStore, sampled: Sampled, make: Make, clock: Any
) -> None:
    """Claims that were postponed do not count toward the limit."""
    sampled(make())
    for _ in range(claims.MAX_CLAIMS):
        tasks = tasks_of(store.queue.claim_tasks("a", TWO_SCORERS, limit=1, lease=LEASE))
        store.queue.postpone_tasks("a", tasks, until=clock.now, reason=UnscoredReason.JUDGE_TIMEOUT, error="no reply")
    for _ in range(claims.MAX_CLAIMS):
        assert len(store.queue.claim_tasks("b", TWO_SCORERS, limit=1, lease=LEASE)) == 1
        clock.advance(seconds=60)

    assert store.queue.claim_tasks("b", TWO_SCORERS, limit=1, lease=LEASE) == []

    assert load_task_errors(store) == [f"{CRASH_ERROR}; earlier error: judge_timeout: no reply"]


def test_sibling_tasks_of_a_failed_task_are_still_claimed(
    store: TrackingStore, sampled: Sampled, make: Make, clock: Any
) -> None:
    """Only the task that reached the claim limit fails."""
    sampled(make(), scorers=TWO_SCORERS)
    for _ in range(claims.MAX_CLAIMS):
        store.queue.claim_tasks("a", {"relevancy": "f1"}, limit=1, lease=LEASE)
        clock.advance(seconds=60)

    [claim] = store.queue.claim_tasks("b", TWO_SCORERS, limit=1, lease=LEASE)

    assert [task.scorer for task in claim.tasks] == ["faithfulness"]
