"""Capture without a database: a test looks at the exchanges its calls made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from germane.tracer import connect, disconnect

if TYPE_CHECKING:
    from germane.exchange import Exchange


@contextmanager
def collect(**settings: Any) -> Iterator[list[Exchange]]:
    """Connect the tracer to a list for as long as the block lasts, and yield that list.

    ::

        with collect() as exchanges:
            ask("How do I reset my password?")
        assert exchanges[0].answer == "Open Settings."

    As a fixture of pytest::

        @pytest.fixture
        def exchanges():
            with germane.testing.collect() as exchanges:
                yield exchanges

    Args:
        settings: Any of the arguments of ``germane.tracer.connect``, such as ``provider``, ``capture`` or
            ``redact``. Spans do not wait for scores unless ``hold=True``.
    """
    exchanges: list[Exchange] = []
    connect(**{"sink": exchanges.append, "service": "test", "hold": False, **settings})
    try:
        yield exchanges
    finally:
        disconnect()
