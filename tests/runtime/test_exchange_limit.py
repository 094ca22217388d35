"""The exchange limit in an application."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import germane

Query = Callable[[str], list[Any]]


@germane.observe
def ask(question: str) -> str:
    """Answer immediately."""
    return "By card, in the shop."


def test_every_observed_call_is_stored_or_counted_as_dropped(
    database: str, query: Query, warnings: Callable[[], list[str]]
) -> None:
    """Rows have their probability, and counts have their reason. One warning is logged, and no handler is affected."""
    germane.start(role="capture", database=database, max_exchanges_per_minute=60)
    for number in range(500):
        assert ask(f"How do I pay {number}?") == "By card, in the shop."
    assert germane.stop(60)

    rows = query("SELECT sampling_key, capture_probability FROM exchange")
    counts = dict(query("SELECT outcome || ' ' || reason, sum(count) FROM tally GROUP BY 1 HAVING sum(count) > 0"))
    assert counts == {"seen ": 500 - len(rows), "skipped exchange_limit": 500 - len(rows)}
    assert 6 <= len(rows) < 250
    assert all(draw <= probability for draw, probability in rows)
    assert min(probability for _, probability in rows) < 1
    [warning] = warnings()
    assert "more than 60 exchanges per minute" in warning
