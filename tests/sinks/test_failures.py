"""Whatever a backend answers, every score arrives once, with its newest value."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from tests.sinks.conftest import Backend, Bench, status

from germane.sinks.sink import MissingSpanError

FAILURES = {
    "rejected key": [status(401)] * 3,
    "wrong URL": [status(404, b"<html>")] * 3,
    "rate limit": [status(429, retry_after="120")] * 2,
    "error": [status(500), status(502, b"bad gateway"), status(503)],
    "no JSON": [status(200, b"<html>please log in</html>")] * 2,
    "redirect": [status(302, location="/api/public/scores")] * 2,
}


@pytest.mark.parametrize("failure", FAILURES)
def test_scores_arrive_once_after_a_failure(bench: Bench, backend: Backend, failure: str) -> None:
    """Nothing is lost and nothing is given up. Meanwhile, one request at a time shows whether the backend works."""
    backend.script += FAILURES[failure]
    failures = len(backend.script)
    exchanges = bench.add(5)
    bench.score(exchanges)

    bench.deliver()
    assert backend.values() == {}
    assert bench.waiting() == 5
    assert len(backend.requests) == 1
    bench.clock.advance(minutes=10)
    bench.score(exchanges[:2], value=0.9)
    for _ in range(failures):
        bench.deliver()
        bench.clock.advance(minutes=10)

    newest = {exchange.span_id: 0.5 for exchange in exchanges} | {each.span_id: 0.9 for each in exchanges[:2]}
    assert backend.values() == {(span, "tone"): value for span, value in newest.items()}
    assert (bench.waiting(), bench.undelivered()) == (0, [])
    assert len(backend.requests) == failures + 1


def test_a_retry_after_is_respected(bench: Bench, backend: Backend) -> None:
    """A backend that asks for two minutes gets no request before they have passed, from any process."""
    backend.script.append(status(429, retry_after="120"))
    bench.score(bench.add(1))

    bench.deliver(times=2, minutes=1.9)
    bench.deliver()
    assert len(backend.requests) == 1
    bench.clock.advance(minutes=0.2)
    bench.deliver()

    assert len(backend.values()) == 1


def test_a_process_pauses_as_a_whole(bench: Bench, backend: Backend) -> None:
    """After a failure, it does not try the other exchanges, although they are due."""
    backend.script.append(status(429, retry_after="120"))
    bench.score(bench.add(200))

    bench.deliver(times=3, minutes=10)

    assert [len(request) for request in backend.requests] == [50]


def test_a_request_that_is_too_large_is_halved(bench: Bench, backend: Backend) -> None:
    """Until the backend accepts it. Only an exchange that is refused alone is given up."""
    exchanges = bench.add(7)
    bench.score(exchanges)
    refused = exchanges[4]

    def limit(scores: list[Any]) -> Any:
        backend.script.append(limit)
        if refused.span_id in {score["observationId"] for score in scores} or len(scores) > 2:
            return status(413)(scores)
        return backend.accept(scores)

    backend.script.append(limit)
    bench.deliver()

    assert backend.values().keys() == {(each.span_id, "tone") for each in exchanges if each is not refused}
    (given_up,) = bench.undelivered()
    assert (given_up.exchange_id, given_up.span_id, given_up.error) == (refused.id, refused.span_id, "status 413")


def test_of_a_request_with_rejected_scores_only_those_are_repeated(bench: Bench, backend: Backend) -> None:
    """A 207 is not repeated as a whole."""
    backend.script.append(backend.reject_half)
    exchanges = bench.add(6)
    bench.score(exchanges)

    bench.deliver(times=2)

    assert [len(request) for request in backend.requests] == [6, 3]
    assert len(backend.values()) == 6
    assert bench.waiting() == 0


def test_a_request_that_was_accepted_without_a_response_is_repeated(bench: Bench, backend: Backend) -> None:
    """The scores replace themselves, and a newer value wins."""
    backend.script.append(backend.accept_silently)
    exchanges = bench.add(3)
    bench.score(exchanges)

    bench.deliver()
    assert bench.waiting() == 3
    bench.clock.advance(minutes=10)
    bench.score(exchanges, value=0.25)
    bench.deliver()

    assert [len(request) for request in backend.requests] == [3, 3]
    assert set(backend.values().values()) == {0.25}


def test_a_rejected_key_is_one_warning(bench: Bench, backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    """It is neither logged for each score nor for each attempt, and once more when the key works."""
    backend.script += [status(401)] * 5
    bench.score(bench.add(120))

    with caplog.at_level(logging.WARNING):
        bench.deliver(times=9)

    assert len(backend.values()) == 120
    assert [len(request) for request in backend.requests] == [50] * 7 + [20]
    assert [record.getMessage().split(";")[0] for record in caplog.records] == [
        "sink langfuse failed to deliver scores of an exchange: status 401: the key was rejected",
        "sink langfuse has recovered after 5 failed attempts",
    ]


class _WithoutSpan:
    """Wraps a sink whose backend never receives some spans."""

    batch_size = 20

    def __init__(self, sink: Any, *exchange_ids: str) -> None:
        self._sink, self._missing = sink, exchange_ids

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sink, name)

    async def write(self, items: Any) -> Any:
        missing = {item.exchange_id: MissingSpanError() for item in items if item.exchange_id in self._missing}
        present = [item for item in items if item.exchange_id not in missing]
        return missing | (await self._sink.write(present) if present else {})


def test_a_span_that_never_arrives_is_given_up_after_an_hour(
    bench: Bench, backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    """It delays no other one, and one warning says so, even if there are many."""
    exchanges = bench.add(50)
    bench.score(exchanges)
    missing = exchanges[17:47]
    bench.sink = _WithoutSpan(bench.sink, *(each.id for each in missing))

    bench.deliver()
    assert len(backend.values()) == 20
    bench.deliver(times=6, minutes=9)
    assert (bench.waiting(), bench.undelivered()) == (30, [])
    bench.deliver(times=2, minutes=15)

    assert bench.waiting() == 0
    shown = {(each.exchange_id, each.span_id, each.error) for each in bench.undelivered()}
    assert len(shown) == 20
    assert shown < {(each.id, each.span_id, "the backend has not received the span") for each in missing}
    assert [record.message for record in caplog.records] == [
        "sink langfuse gave up on scores of an exchange: the backend has not received the span"
    ]


def test_many_waiting_exchanges_hide_no_due_one(bench: Bench, backend: Backend) -> None:
    """Hundreds that wait for their spans do not delay a later one."""
    early = bench.add(260)
    bench.score(early)
    bench.sink = _WithoutSpan(bench.sink, *(each.id for each in early))
    bench.deliver()
    assert bench.waiting() == 260
    late = bench.add(1)
    bench.score(late)
    bench.deliver()

    assert list(backend.values()) == [(late[0].span_id, "tone")]


def test_scores_are_retried_for_a_week(bench: Bench, backend: Backend) -> None:
    """Then they are given up, and a new score starts again."""
    bench.score(exchanges := bench.add(1))
    backend.script += [status(500)] * 8

    bench.deliver(times=7, minutes=24 * 60)
    assert bench.waiting() == 1
    bench.deliver(times=2, minutes=24 * 60)
    assert [each.error for each in bench.undelivered()] == ["status 500"]
    bench.score(exchanges, value=0.75)
    assert (bench.waiting(), bench.undelivered()) == (1, [])
    bench.deliver()

    assert set(backend.values().values()) == {0.75}
