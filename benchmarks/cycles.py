"""Memory usage over many starts and stops: python benchmarks/cycles.py [CYCLES].

Each cycle starts germane, captures one exchange, waits for its score, and stops. The benchmark prints the memory and
the number of objects that the garbage collector tracks. Goal: after the first 50 cycles, memory grows by at most a
tenth.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import time
from pathlib import Path

import germane
from germane.testing import FakeJudge

FIRST = 50
"""Number of cycles before the first memory measurement, during which caches and allocators fill up."""
MAX_GROWTH = 1.1
"""Maximum ratio of the last memory measurement to the first."""


@germane.observe
def ask(question: str) -> str:
    """Return an answer immediately."""
    return f"By card, in the shop. You asked: {question}"


def rss() -> float:
    """Return the resident memory of this process in megabytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> int:
    """Print ten lines; return 1 if the goal is missed or an exchange was not scored."""
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("cycles", nargs="?", type=int, default=1000, help="number of cycles; default: 1000")
    parser.add_argument("--postgresql", metavar="URL", help="a migrated database; default: a temporary SQLite file")
    given = parser.parse_args()
    first, longest, scores = 0.0, 0.0, 0
    with tempfile.TemporaryDirectory() as folder, FakeJudge() as judge:
        database = given.postgresql or f"sqlite:///{folder}/germane.db"
        for cycle in range(1, given.cycles + 1):
            germane.start(database=database, poll_interval=0.05, **judge.settings())
            ask(f"How do I pay order {cycle}?")
            began = time.perf_counter()
            stopped = germane.stop(drain_timeout=30)
            longest = max(longest, time.perf_counter() - began)
            judge.requests.clear()  # the fake judge runs in this process and stores every request
            if not stopped:
                print(f"cycle {cycle}: stop did not finish all work")
                return 1
            if cycle == min(FIRST, given.cycles):
                first = rss()
            if cycle % max(1, given.cycles // 10) == 0 or cycle == FIRST:
                gc.collect()
                print(f"cycle {cycle:5}   {rss():6.1f} MB   {len(gc.get_objects()):7} objects", flush=True)
        with germane.Store(database) as store:
            scores = store.answers.counts().scores
    growth = rss() / first
    print(f"scores {scores} of {given.cycles}   growth after cycle {FIRST}: {growth:.3f} (at most {MAX_GROWTH})")
    print(f"longest stop, including the wait for the score: {longest:.1f} s")
    return 0 if scores >= given.cycles and growth <= MAX_GROWTH else 1


if __name__ == "__main__":
    sys.exit(main())
