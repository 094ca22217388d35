"""Streams that the garbage collector drops: the interpreter survives, and the exchanges are recorded."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

ABANDONED = """
import contextvars, gc, json
import germane
from germane.tracer.lifecycle import connect, flush
from opentelemetry.sdk.trace import TracerProvider

captured = []
connect(sink=captured.append, service="shop", holds_spans=False, provider=TracerProvider(shutdown_on_exit=False))

@germane.observe
def ask(question):
    yield "a"
    yield "b"

class Cycle:
    pass

def abandon(question):
    stream = ask(question)
    next(stream)
    cycle = Cycle()
    cycle.stream, cycle.itself = stream, cycle

variables = [contextvars.ContextVar(f"v{number}") for number in range(40)]
gc.set_threshold(50)
for number in range(5000):
    abandon(f"Why {number}?")
    for variable in variables:
        variable.set(number)
implicit = len(captured)

gc.disable()
gc.collect()
abandon("Is this one recorded at once?")
before = len(captured)
gc.collect()
at_once = len(captured) - before
flush(5)
print(json.dumps([implicit, at_once, len(captured)]))
"""


@pytest.fixture(scope="module")
def counts() -> Any:
    """The numbers of exchanges captured by implicit collections, by an explicit collection, and in total."""
    result = subprocess.run([sys.executable, "-c", ABANDONED], capture_output=True, text=True, timeout=100)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_streams_in_collected_reference_cycles_are_recorded(counts: Any) -> None:
    """Each abandoned stream yields an exchange. Finalizers that set context variables do not crash the interpreter."""
    implicit, _, total = counts

    assert implicit > 4900
    assert total == 5001


def test_an_explicit_garbage_collection_ends_streams_immediately(counts: Any) -> None:
    """``gc.collect()`` runs between bytecodes, where it is safe to end streams."""
    _, at_once, _ = counts

    assert at_once == 1
