"""Fills what the sixth revision brought: how the jobs of processes went, and answers that are scored again.

A part of ``fill.py``, which runs it with code that has these tables.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from germane.storage import JobRuns, Presence, Rescored, Run, Store

NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)
ODD = 'NUL \0, half a pair \ud800 and "quotes"; DROP TABLE job; \U0001f468\u200d\U0001f469 \u00fc\u00df'
SCORERS = {"faithfulness": "f2", "relevancy": "f1"}
AGAIN = (2, 4)
"""Exchanges that are scored again: one that has a score, which stands until then, and one that failed."""


def fill(store: Store) -> None:
    """Fill the table, and have two answers scored again by one scorer each."""
    good = Run(started_at=NOON - timedelta(seconds=2), seconds=0.25)
    bad = Run(started_at=NOON, seconds=1.5, problem=ODD)
    jobs = (JobRuns(name="watch", every=2.0, runs=(good, bad)), JobRuns(name="save", runs=(good,)))
    known: dict[str, Any] = {"service": "caf\u00e9", "version": "0.6.0", "scorers": SCORERS, "problem": ODD}
    store.beat(Presence(id="idle", host="b", pid=2, jobs=jobs, **known), [], lease=timedelta(hours=1))
    pairs = [(f"{number + 1:032x}", "relevancy") for number in AGAIN]
    assert store.rescore(pairs, SCORERS) == Rescored(ready=2)


def read(store: Store) -> dict[str, Any]:
    """Return what the Store reads back of it, and what pages show of single answers."""
    ids = sorted(one.id for one in store.exchanges(limit=1000))
    return {
        "jobs": [asdict(one) for one in store.jobs()],
        "sheets": [asdict(sheet) for one in ids if (sheet := store.sheet(one)) is not None],
        "disagreements": [asdict(one) for one in store.disagreements()],
    }
