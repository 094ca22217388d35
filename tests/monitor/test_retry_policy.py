"""When something is tried again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from germane.monitor.loop.backoff import Backoff
from germane.monitor.scoring import retry_policy
from germane.monitor.scoring.circuit_breaker import REJECTIONS, Pause
from germane.monitor.scoring.retry_policy import Patience
from germane.score import Reason, Score

MINUTE = timedelta(minutes=1)


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, time: timedelta) -> None:
        self.now += time


@pytest.fixture
def clock() -> Clock:
    return Clock()


def failed(reason: Reason, retry_after: float | None = None, **more: bool) -> Score:
    details = more if retry_after is None else {"retry_after": retry_after, **more}
    return Score(scorer="relevancy", fingerprint="f1", reason=reason, explanation="because", details=details)


GOOD = Score(scorer="relevancy", fingerprint="f1", value=0.5)


@pytest.mark.parametrize(("tries", "longest"), [(1, 1), (2, 2), (3, 4), (9, 256), (10, 300), (10_000, 300)])
def test_waits_double_up_to_a_limit(tries: int, longest: float) -> None:
    """Each wait is up to twice the one before, never longer than the limit, and at least half of that."""
    waits = [Backoff(first=1, limit=300).wait(tries).total_seconds() for _ in range(50)]

    assert longest / 2 <= min(waits) <= max(waits) <= longest
    assert len(set(waits)) > 1


def test_what_a_server_asks_for_is_waited_for() -> None:
    """A longer wait that was asked for is kept, up to the limit."""
    backoff = Backoff(first=1, limit=300)

    assert backoff.wait(1, at_least=20) == timedelta(seconds=20)
    assert backoff.wait(1, at_least=86400) == timedelta(seconds=300)
    assert Backoff(limit=10, longest_asked=60).wait(9, at_least=86400) == timedelta(seconds=60)
    assert backoff.wait(9, at_least=1) >= timedelta(seconds=128)


def test_a_task_is_tried_again_for_its_time_and_no_longer(clock: Clock) -> None:
    """The time counts from the first trouble of a task; then its failure is final."""
    waiting = Patience(timedelta(hours=1), backoff=Backoff(), clock=clock)
    first = waiting.next_try(1)
    assert first is not None
    assert clock.now < first <= clock.now + timedelta(seconds=1)

    clock.pass_(59 * MINUTE)
    assert waiting.next_try(1) is not None
    assert waiting.next_try(2) is not None
    clock.pass_(MINUTE)
    assert waiting.next_try(1) is None
    assert waiting.next_try(2) is not None


def test_waits_go_on_growing_after_a_restart(clock: Clock) -> None:
    """A task that was tried in vain before waits as long as if the process had never ended."""
    waiting = Patience(timedelta(hours=1), backoff=Backoff(first=1, limit=300), clock=clock)

    first, again = waiting.next_try(1, tries=6), waiting.next_try(1, tries=6)

    assert first is not None
    assert again is not None
    assert timedelta(seconds=32) <= first - clock.now <= timedelta(seconds=64)
    assert timedelta(seconds=64) <= again - clock.now <= timedelta(seconds=128)


def test_a_task_that_came_right_begins_anew(clock: Clock) -> None:
    """What is forgotten has all its time again."""
    waiting = Patience(timedelta(hours=1), backoff=Backoff(), clock=clock)
    waiting.next_try(1)
    clock.pass_(60 * MINUTE)
    waiting.forget(1)

    assert waiting.next_try(1) is not None


def test_troubles_that_others_ended_do_not_pile_up(clock: Clock) -> None:
    """What is remembered is bounded by what is in trouble now."""
    waiting = Patience(timedelta(hours=1), backoff=Backoff(), clock=clock)
    for task in range(retry_policy.FEW):
        waiting.next_try(task)
    clock.pass_(121 * MINUTE)
    waiting.next_try("one more")

    assert list(waiting._troubles) == ["one more"]


def test_a_refusal_of_the_embedder_is_one(clock: Clock) -> None:
    """Key, model or quota: the scorer pauses as soon as for a judge's."""
    pause = Pause("relevancy", backoff=Backoff(first=60, limit=300), clock=clock)
    for _ in range(REJECTIONS):
        assert not pause.closed
        pause.note(failed(Reason.EMBEDDER_ERROR, 0.0, rejected=True), pause.admit())

    assert pause.closed


def test_a_scorer_pauses_after_rejections_in_a_row_and_probes(clock: Clock) -> None:
    """Closed for a while that grows with each failed probe; one exchange at a time probes; a reply ends it."""
    pause = Pause("relevancy", backoff=Backoff(first=60, limit=300), clock=clock)
    pause.note(failed(Reason.JUDGE_REJECTED), pause.admit())
    assert pause.admit() == "go"
    pause.note(failed(Reason.JUDGE_REJECTED), "go")

    assert (pause.closed, pause.admit(), pause.problem) == (True, "wait", "judge_rejected: because")
    clock.pass_(MINUTE)
    assert (pause.admit(), pause.admit()) == ("probe", "wait")
    pause.note(failed(Reason.JUDGE_REJECTED), "probe")
    assert pause.closed
    assert pause.left() >= MINUTE
    clock.pass_(2 * MINUTE)
    pause.note(GOOD, pause.admit())
    assert (pause.closed, pause.admit(), pause.problem, pause.left()) == (False, "go", None, timedelta())


def test_what_was_under_way_when_a_pause_began_does_not_prolong_it(clock: Clock) -> None:
    """Sixteen requests that fail together are one failure, not sixteen."""
    pause = Pause("relevancy", backoff=Backoff(first=60, limit=3600), clock=clock)
    for _ in range(16):
        pause.note(failed(Reason.JUDGE_UNREACHABLE), "go")

    assert pause.left() <= MINUTE


def test_a_probe_that_was_given_up_leaves_its_place(clock: Clock) -> None:
    """A probe that ends without a score does not keep the next one from going ahead."""
    pause = Pause("relevancy", backoff=Backoff(first=60), clock=clock)
    pause.note(failed(Reason.JUDGE_RATE_LIMITED, retry_after=20), "go")
    clock.pass_(MINUTE)
    pause.abandon(pause.admit())

    assert pause.admit() == "probe"


def test_a_pause_ends_when_the_clock_is_set_back(clock: Clock) -> None:
    """Nobody waits for the hour that the clock lost; a pause that is as long as they get is kept."""
    pause = Pause("relevancy", backoff=Backoff(first=300, limit=300), clock=clock)
    pause.note(failed(Reason.JUDGE_RATE_LIMITED, retry_after=300), "go")
    assert pause.closed
    clock.pass_(timedelta(hours=-1))

    assert pause.admit() == "probe"


def test_a_single_outage_pauses_nobody(clock: Clock) -> None:
    """A time-out here and there is that exchange's trouble alone; replies in between count."""
    pause = Pause("relevancy", backoff=Backoff(), clock=clock)
    for _ in range(10):
        pause.note(failed(Reason.JUDGE_TIMEOUT), "go")
        pause.note(failed(Reason.UNPARSABLE), "go")

    assert not pause.closed


@pytest.mark.parametrize("reason", [Reason.MISSING_INPUT, Reason.SCORER_ERROR])
def test_what_never_reached_the_judge_ends_no_pause(clock: Clock, reason: Reason) -> None:
    """A missing input or a bug in a scorer says nothing about the judge."""
    pause = Pause("relevancy", backoff=Backoff(first=60), clock=clock)
    pause.note(failed(Reason.JUDGE_RATE_LIMITED, retry_after=20), "go")
    clock.pass_(MINUTE)
    pause.note(failed(reason), pause.admit())

    assert pause.problem is not None
