"""Backoff, the retry policy and the circuit breaker."""

from __future__ import annotations

from datetime import timedelta

import pytest

from germane.delivery import Backoff
from germane.monitor.scoring import failures
from germane.monitor.scoring.failures import MAX_REJECTIONS, CircuitBreaker, RetryPolicy
from germane.score import Score, UnscoredReason
from germane.testing import Clock

MINUTE = timedelta(minutes=1)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def failed(reason: UnscoredReason, retry_after: float | None = None, **more: bool) -> Score:
    details = more if retry_after is None else {"retry_after": retry_after, **more}
    return Score(scorer="relevancy", fingerprint="f1", reason=reason, explanation="because", details=details)


SCORED = Score(scorer="relevancy", fingerprint="f1", value=0.5)


@pytest.mark.parametrize(("tries", "longest"), [(1, 1), (2, 2), (3, 4), (9, 256), (10, 300), (10_000, 300)])
def test_retry_delays_double_up_to_a_maximum(tries: int, longest: float) -> None:
    """The longest possible delay doubles with each attempt, up to the maximum. The shortest is half as long."""
    waits = [Backoff(initial=1, maximum=300).delay(tries).total_seconds() for _ in range(50)]

    assert longest / 2 <= min(waits) <= max(waits) <= longest
    assert len(set(waits)) > 1


def test_a_retry_after_header_extends_the_delay() -> None:
    """Retry-After has its own maximum."""
    backoff = Backoff(initial=1, maximum=300)

    assert backoff.delay(1, retry_after=20) == timedelta(seconds=20)
    assert backoff.delay(1, retry_after=86400) == timedelta(seconds=300)
    assert Backoff(maximum=10, max_retry_after=60).delay(9, retry_after=86400) == timedelta(seconds=60)
    assert backoff.delay(9, retry_after=1) >= timedelta(seconds=128)


def test_a_task_is_retried_until_the_retry_timeout(clock: Clock) -> None:
    """The timeout starts at the task's first failure."""
    policy = RetryPolicy(timedelta(hours=1), backoff=Backoff(), clock=clock)
    first = policy.next_retry_at(1)
    assert first is not None
    assert clock.now < first <= clock.now + timedelta(seconds=1)

    clock.advance(59 * MINUTE)
    assert policy.next_retry_at(1) is not None
    assert policy.next_retry_at(2) is not None
    clock.advance(MINUTE)
    assert policy.next_retry_at(1) is None
    assert policy.next_retry_at(2) is not None


def test_retry_delays_keep_growing_after_a_restart(clock: Clock) -> None:
    """The number of earlier attempts is stored with the task."""
    policy = RetryPolicy(timedelta(hours=1), backoff=Backoff(initial=1, maximum=300), clock=clock)

    first, again = policy.next_retry_at(1, attempts=6), policy.next_retry_at(1, attempts=6)

    assert first is not None
    assert again is not None
    assert timedelta(seconds=32) <= first - clock.now <= timedelta(seconds=64)
    assert timedelta(seconds=64) <= again - clock.now <= timedelta(seconds=128)


def test_a_successful_attempt_resets_the_retry_timeout(clock: Clock) -> None:
    """If the same task fails later, it is retried for the full timeout."""
    policy = RetryPolicy(timedelta(hours=1), backoff=Backoff(), clock=clock)
    policy.next_retry_at(1)
    clock.advance(60 * MINUTE)
    policy.forget_task(1)

    assert policy.next_retry_at(1) is not None


def test_retry_state_of_finished_tasks_is_dropped(clock: Clock) -> None:
    """The number of tasks that are currently failing limits the memory usage."""
    policy = RetryPolicy(timedelta(hours=1), backoff=Backoff(), clock=clock)
    for task in range(failures.MIN_CLEANUP_SIZE):
        policy.next_retry_at(task)
    clock.advance(121 * MINUTE)
    policy.next_retry_at("one more")

    assert list(policy._states) == ["one more"]


def test_rejections_by_the_embedder_open_the_circuit_breaker(clock: Clock) -> None:
    """If the key, model or quota is rejected, it takes as many rejections as for the judge."""
    breaker = CircuitBreaker("relevancy", backoff=Backoff(initial=60, maximum=300), clock=clock)
    for _ in range(MAX_REJECTIONS):
        assert not breaker.is_rejecting
        breaker.record_score(failed(UnscoredReason.EMBEDDER_ERROR, 0.0, rejected=True), breaker.admit())

    assert breaker.is_rejecting


def test_consecutive_rejections_open_the_circuit_breaker(clock: Clock) -> None:
    """The pause doubles with each failed probe, one exchange at a time is the probe, and a reply closes the circuit."""
    breaker = CircuitBreaker("relevancy", backoff=Backoff(initial=60, maximum=300), clock=clock)
    breaker.record_score(failed(UnscoredReason.JUDGE_REJECTED), breaker.admit())
    assert breaker.admit() == "allow"
    breaker.record_score(failed(UnscoredReason.JUDGE_REJECTED), "allow")

    assert (breaker.is_rejecting, breaker.admit(), breaker.problem) == (True, "reject", "judge_rejected: because")
    clock.advance(MINUTE)
    assert (breaker.admit(), breaker.admit()) == ("probe", "reject")
    breaker.record_score(failed(UnscoredReason.JUDGE_REJECTED), "probe")
    assert breaker.is_rejecting
    assert breaker.retry_delay() >= MINUTE
    clock.advance(2 * MINUTE)
    breaker.record_score(SCORED, breaker.admit())
    assert (breaker.is_rejecting, breaker.admit(), breaker.problem, breaker.retry_delay()) == (
        False,
        "allow",
        None,
        timedelta(),
    )


def test_concurrent_failures_count_as_one_failure(clock: Clock) -> None:
    """Sixteen requests that fail at the same time do not lengthen the pause."""
    breaker = CircuitBreaker("relevancy", backoff=Backoff(initial=60, maximum=3600), clock=clock)
    for _ in range(16):
        breaker.record_score(failed(UnscoredReason.JUDGE_UNREACHABLE), "allow")

    assert breaker.retry_delay() <= MINUTE


def test_another_probe_is_allowed_after_a_canceled_probe(clock: Clock) -> None:
    """A probe without a score does not block the next one."""
    breaker = CircuitBreaker("relevancy", backoff=Backoff(initial=60), clock=clock)
    breaker.record_score(failed(UnscoredReason.JUDGE_RATE_LIMITED, retry_after=20), "allow")
    clock.advance(MINUTE)
    breaker.cancel_admission(breaker.admit())

    assert breaker.admit() == "probe"


def test_setting_the_clock_back_ends_a_pause_of_the_circuit_breaker(clock: Clock) -> None:
    """The pause does not grow by the repeated hour, and a pause of the maximum length is kept."""
    breaker = CircuitBreaker("relevancy", backoff=Backoff(initial=300, maximum=300), clock=clock)
    breaker.record_score(failed(UnscoredReason.JUDGE_RATE_LIMITED, retry_after=300), "allow")
    assert breaker.is_rejecting
    clock.advance(timedelta(hours=-1))

    assert breaker.admit() == "probe"


def test_single_timeouts_do_not_open_the_circuit_breaker(clock: Clock) -> None:
    """Replies between the timeouts reset the count."""
    breaker = CircuitBreaker("relevancy", backoff=Backoff(), clock=clock)
    for _ in range(10):
        breaker.record_score(failed(UnscoredReason.JUDGE_TIMEOUT), "allow")
        breaker.record_score(failed(UnscoredReason.UNPARSABLE), "allow")

    assert not breaker.is_rejecting


@pytest.mark.parametrize("reason", [UnscoredReason.MISSING_INPUT, UnscoredReason.SCORER_ERROR])
def test_failures_without_a_request_do_not_close_the_circuit_breaker(clock: Clock, reason: UnscoredReason) -> None:
    """A missing input or a bug in a scorer says nothing about the judge."""
    breaker = CircuitBreaker("relevancy", backoff=Backoff(initial=60), clock=clock)
    breaker.record_score(failed(UnscoredReason.JUDGE_RATE_LIMITED, retry_after=20), "allow")
    clock.advance(MINUTE)
    breaker.record_score(failed(reason), breaker.admit())

    assert breaker.problem is not None
