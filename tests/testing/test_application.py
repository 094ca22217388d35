"""Tools for testing applications: collected exchanges, strict mode, the clock and predictable ids."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from opentelemetry.sdk.trace import TracerProvider

import germane
from germane.errors import UsageError
from germane.testing import Clock, IncrementalIdGenerator, collect, strict


@germane.observe
def ask(question: str) -> str:
    return question.upper()


def test_collect_captures_only_exchanges_inside_its_block() -> None:
    """A call inside the block is in the list, but a call after the block is not."""
    with collect() as exchanges:
        ask("a")
    ask("b")

    assert [(exchange.question, exchange.answer, exchange.service) for exchange in exchanges] == [("a", "A", "test")]


def test_strict_mode_raises_selector_errors() -> None:
    """In strict mode, a selector that does not match fails the call and the test."""

    @germane.observe(answer="text")
    def reply(question: str) -> dict[str, str]:
        return {"answer": question}

    with collect(), strict(), pytest.raises(UsageError, match="has no 'text'"):
        reply("a")


def test_the_test_clock_changes_only_when_it_is_advanced() -> None:
    """The clock shows a fixed time in UTC until a test advances it or sets it back."""
    clock = Clock()
    noon = clock()

    assert (clock(), noon.tzinfo) == (noon, UTC)
    clock.advance(hours=1, seconds=0.5)
    assert clock() == noon + timedelta(hours=1, seconds=0.5)
    clock.advance(timedelta(hours=-2))
    assert clock() == noon - timedelta(minutes=59, seconds=59.5)


def test_the_test_clock_starts_at_a_given_time() -> None:
    """A test chooses the time, and may assign to it later."""
    clock = Clock(datetime(2026, 11, 1, tzinfo=UTC))

    assert clock().month == 11
    clock.now = datetime(2027, 1, 1, tzinfo=UTC)
    assert clock().year == 2027


def test_incremental_ids_make_trace_and_span_ids_predictable() -> None:
    """With an incremental id generator, tests can compare the ids of exchanges literally."""
    provider = TracerProvider(id_generator=IncrementalIdGenerator(), shutdown_on_exit=False)
    with collect(provider=provider) as exchanges:
        ask("a")
        ask("b")

    assert [(exchange.trace_id, exchange.span_id) for exchange in exchanges] == [
        ("0" * 31 + "1", "0" * 15 + "1"),
        ("0" * 31 + "2", "0" * 15 + "2"),
    ]


def test_incremental_exchange_ids_start_at_one() -> None:
    """Each generator returns the same sequence of exchange ids."""
    new_id = IncrementalIdGenerator()

    assert [new_id(), new_id()] == ["0" * 31 + "1", "0" * 31 + "2"]
