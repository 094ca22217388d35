"""Exchange ids, sampling keys, and exchanges created from texts."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from germane.exchange import Context, Exchange, Message, matches_attributes, new_exchange_id, sampling_key_for


def test_exchange_ids_are_distinct_and_sort_by_time() -> None:
    """Ten thousand ids differ, have 32 hexadecimal digits, and start with milliseconds that never decrease."""
    ids = [new_exchange_id() for _ in range(10_000)]

    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch("[0-9a-f]{32}", exchange_id) for exchange_id in ids)
    times = [exchange_id[:12] for exchange_id in ids]
    assert times == sorted(times)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_forked_child_and_parent_create_different_ids() -> None:
    """A child process does not use random digits that its parent buffered before the fork."""
    new_exchange_id()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, "".join(new_exchange_id()[12:] for _ in range(100)).encode())
        os._exit(0)
    os.close(writing)
    parent_ids = {new_exchange_id()[12:] for _ in range(100)}
    with os.fdopen(reading) as pipe:
        output = pipe.read()
    os.waitpid(child, 0)

    child_ids = {output[start : start + 20] for start in range(0, len(output), 20)}
    assert len(child_ids) == 100
    assert parent_ids.isdisjoint(child_ids)


@given(st.binary(min_size=16, max_size=16))
def test_sampling_key_is_above_zero_and_at_most_one(trace_id: bytes) -> None:
    """Rate 0 samples no exchange and rate 1 samples all. A trace always has the same key."""
    key = sampling_key_for(trace_id.hex())

    assert 0 < key <= 1
    assert key == sampling_key_for(trace_id.hex())


def test_sampling_keys_are_uniformly_distributed() -> None:
    """A rate of 0.1 samples a tenth of ten thousand traces, even if their ids are consecutive."""
    keys = [sampling_key_for(f"{number:032x}") for number in range(10_000)]

    assert 850 < sum(key <= 0.1 for key in keys) < 1150


def test_sampling_key_for_a_trace_never_changes() -> None:
    """Every version computes the same key, because processes of two versions may share one database."""
    assert sampling_key_for("a" * 32) == 0.5886324739114288


def test_exchange_can_be_created_from_texts_alone() -> None:
    """Callers of a scorer do not need to pass ids or times. They are filled in, and each id is different."""
    first, second = (
        Exchange.from_texts("Why?", "Because.", ["It is so."], [Message("user", "Hello.")]) for _ in range(2)
    )

    assert (first.question, first.answer, first.contexts) == ("Why?", "Because.", (Context("It is so."),))
    assert first.history == (Message("user", "Hello."),)
    assert (first.started_at.utcoffset(), first.status) == (timedelta(0), "ok")
    assert first.id != second.id


@pytest.mark.parametrize(
    ("attributes", "patterns", "fits"),
    [
        ({}, {}, True),
        ({"tenant": "acme"}, {}, True),
        ({"tenant": "acme"}, {"tenant": "ac*"}, True),
        ({"tenant": "acme"}, {"tenant": "AC*"}, False),
        ({}, {"tenant": "*"}, False),
        ({"trial": False, "seats": 4}, {"trial": "false", "seats": "4"}, True),
        ({"trial": False, "seats": 4}, {"trial": "false", "seats": "5"}, False),
    ],
)
def test_attributes_must_match_all_patterns(attributes: dict[str, Any], patterns: dict[str, str], fits: bool) -> None:
    """A missing attribute never matches; numbers and Booleans are compared as they are written in TOML and JSON."""
    assert matches_attributes(attributes, patterns) is fits
