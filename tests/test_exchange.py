"""Ids and draws of exchanges."""

from __future__ import annotations

import os
import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.exchange import Context, Exchange, Message, sampling_key_for, new_exchange_id


def test_ids_are_distinct_and_sort_by_time() -> None:
    """Ten thousand ids differ, have 32 hexadecimal digits, and begin with milliseconds that never go back."""
    ids = [new_exchange_id() for _ in range(10_000)]

    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch("[0-9a-f]{32}", one) for one in ids)
    assert [one[:12] for one in ids] == sorted(one[:12] for one in ids)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_gives_other_ids_than_its_parent() -> None:
    """What randomness was put by before the fork is the parent's alone."""
    new_exchange_id()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, "".join(new_exchange_id()[12:] for _ in range(100)).encode())
        os._exit(0)
    os.close(writing)
    ours = {new_exchange_id()[12:] for _ in range(100)}
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    os.waitpid(child, 0)

    theirs = {told[start : start + 20] for start in range(0, len(told), 20)}
    assert len(theirs) == 100
    assert ours.isdisjoint(theirs)


@given(st.binary(min_size=16, max_size=16))
def test_a_draw_lies_above_zero_and_up_to_one(trace_id: bytes) -> None:
    """Rate 0 draws nobody, rate 1 everybody; the same trace has the same draw wherever it is asked for."""
    draw = sampling_key_for(trace_id.hex())

    assert 0 < draw <= 1
    assert draw == sampling_key_for(trace_id.hex())


def test_draws_are_spread_evenly() -> None:
    """Of ten thousand traces, a tenth has a draw up to a tenth, whatever their lowest bits are."""
    draws = [sampling_key_for(f"{number:032x}") for number in range(10_000)]

    assert 850 < sum(draw <= 0.1 for draw in draws) < 1150


def test_the_draw_of_a_trace_is_fixed() -> None:
    """It must be the same in every version: processes of two versions may share one database."""
    assert sampling_key_for("a" * 32) == 0.5886324739114288


def test_an_exchange_may_be_made_of_its_texts_alone() -> None:
    """Whoever calls a scorer by hand makes up no ids and no times."""
    one, other = (Exchange.from_texts("Why?", "Because.", ["It is so."], [Message("user", "Hello.")]) for _ in range(2))

    assert (one.question, one.answer, one.contexts) == ("Why?", "Because.", (Context("It is so."),))
    assert one.history == (Message("user", "Hello."),)
    assert (one.started_at.utcoffset(), one.status) == (timedelta(0), "ok")
    assert one.id != other.id
