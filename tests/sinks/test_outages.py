"""One exchange that a backend cannot take delays no other one, and an outage costs no score."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest
from tests.sinks.conftest import Backend, Bench, status

from germane.sinks.sink import MissingSpanError
from germane.storage import SinkItem


def fail_with(backend: Backend, span_ids: Collection[str], response: Any) -> None:
    """Let requests fail that contain a score of one of the spans."""

    def respond(scores: list[Any]) -> Any:
        backend.script.append(respond)
        is_bad = not {score["observationId"] for score in scores}.isdisjoint(span_ids)
        return response(scores) if is_bad else backend.accept(scores)

    backend.script.append(respond)


@pytest.mark.parametrize("response", [status(500), status(0)], ids=["500", "no response"])
def test_an_exchange_with_which_the_backend_fails_delays_no_other(
    bench: Bench, backend: Backend, response: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The others are sent in ever smaller requests. Once the bad ones are alone, they are not logged again."""
    exchanges = bench.add(60)
    bench.score(exchanges)
    bad = {exchanges[7].span_id, exchanges[31].span_id}
    fail_with(backend, bad, response)
    bench.sink = traffic = _WithTraffic(bench)
    bench.deliver(times=40, minutes=10)

    assert {span for span, _ in backend.values()} == {each.span_id for each in (*exchanges, *traffic.added)} - bad
    assert (bench.waiting(), bench.undelivered()) == (2, [])
    assert len(caplog.records) < 25
    assert len(backend.requests) < 150


class _WithTraffic:
    """A sink to which an exchange is queued each time the clock advances."""

    def __init__(self, bench: Bench) -> None:
        self._bench, self._sink, self._last = bench, bench.sink, bench.clock()
        self.added: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sink, name)

    async def write(self, items: Sequence[SinkItem]) -> Any:
        if self._last < self._bench.clock():
            self._last = self._bench.clock()
            self.added += self._bench.add(1)
            self._bench.score(self.added[-1:])
        return await self._sink.write(items)


def test_an_unavailable_backend_gets_one_request_per_attempt(bench: Bench, backend: Backend) -> None:
    """Smaller requests do not make more of them, and those with other scores stay as large as they were."""
    backend.script += [status(503)] * 4
    bench.score(bench.add(50))

    bench.deliver(times=4)
    assert len(backend.requests) == 4
    bench.score(bench.add(50))
    bench.deliver(times=2)

    assert bench.waiting() == 0


class _WithoutSpans:
    """A sink whose backend has received no span."""

    def __init__(self, sink: Any) -> None:
        self._sink = sink

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sink, name)

    async def write(self, items: Sequence[SinkItem]) -> Mapping[str, MissingSpanError]:
        return {item.exchange_id: MissingSpanError(status=404) for item in items}


def test_the_hour_for_a_span_begins_when_the_backend_first_misses_it(bench: Bench, backend: Backend) -> None:
    """While the backend was unreachable, spans could not arrive, either: they wait where the scores do."""
    backend.script += [status(503)] * 13
    exchanges = bench.add(1)
    bench.score(exchanges)
    bench.deliver(times=13, minutes=10)
    sink, bench.sink = bench.sink, _WithoutSpans(bench.sink)
    bench.clock.advance(minutes=10)

    bench.deliver(times=6, minutes=10)
    assert (bench.waiting(), bench.undelivered()) == (1, [])
    bench.sink = sink
    bench.clock.advance(minutes=9)
    bench.deliver()
    assert len(backend.values()) == 1

    bench.score(exchanges, value=0.9)
    bench.sink = _WithoutSpans(sink)
    bench.deliver(times=8, minutes=10)
    assert [(each.exchange_id, each.settled_at - bench.clock()) for each in bench.undelivered()] == [
        (exchanges[0].id, timedelta(minutes=-10))
    ]
