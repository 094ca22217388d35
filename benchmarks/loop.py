"""Lag of an application's event loop, and its memory, with and without germane: python benchmarks/loop.py.

The application answers 200 questions per second in asynchronous handlers. A task that is scheduled every 2 ms measures
how late it runs. Each variant runs in a new process: without germane, capture only, everything on SQLite, and, with
--postgresql URL, everything on PostgreSQL (an empty database). The judge runs in another process.

The goal is a maximum lag of 30 ms with germane. If the machine is busy with other work, compare it with the lag without
germane.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MAX_LAG = 30.0
"""Goal for the maximum lag, in milliseconds."""
MAX_RSS = 140.0
"""Goal for the memory of the variants that also score, in megabytes."""
RATE = 200
"""Questions per second."""
WAKE = 0.002
"""Seconds between two measurements of the lag."""
WARM_UP = 10.0
"""Seconds before the measurement, during which germane starts."""
LATENCY, EMBEDDING_LATENCY = 0.2, 0.05
"""Latencies of the judge in seconds."""
Handler = Callable[[str], Coroutine[Any, Any, str]]


async def answer(question: str) -> str:
    """Return an answer after a few milliseconds of waiting."""
    await asyncio.sleep(0.005)
    return f"Orders can be returned within thirty days of delivery. {question} Print the label from your account."


async def serve(handler: Handler, seconds: float) -> dict[str, float]:
    """Answer questions at the fixed rate and return the lags in milliseconds."""
    loop = asyncio.get_running_loop()
    lags = array("d")  # a list of floats would take 32 bytes per value, which would count as germane's
    pauses: list[float] = []
    began = 0.0

    def collected(phase: str, details: dict[str, int]) -> None:
        nonlocal began
        if phase == "start":
            began = time.perf_counter()
        elif details["generation"] == 2:
            pauses.append(1e3 * (time.perf_counter() - began))

    async def measure() -> None:
        while True:
            due = loop.time() + WAKE
            await asyncio.sleep(WAKE)
            lags.append(1e3 * (loop.time() - due))

    async def ask(until: float) -> None:
        due, number, running = loop.time(), 0, set[asyncio.Task[str]]()
        while due < until:
            await asyncio.sleep(max(0.0, due - loop.time()))
            running.add(task := asyncio.create_task(handler(f"How do I return order {number}, {due}?")))
            task.add_done_callback(running.discard)
            due, number = due + 1 / RATE, number + 1
        await asyncio.gather(*running)

    await ask(loop.time() + WARM_UP)
    gc.callbacks.append(collected)
    measuring = asyncio.create_task(measure())
    await ask(loop.time() + seconds)
    measuring.cancel()
    memory, in_order = rss(), sorted(lags)
    return {
        "p50": in_order[len(lags) // 2],
        "p99.9": in_order[int(len(lags) * 0.999)],
        "max": in_order[-1],
        "collections": len(pauses),
        "pause": max(pauses, default=0.0),
        "RSS": memory,
    }


def rss() -> float:
    """Return the resident memory of this process in megabytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def run_variant(variant: str, seconds: float, database: str, judge_url: str) -> dict[str, float]:
    """Run one variant in this process."""
    if variant == "bare":
        return asyncio.run(serve(answer, seconds))
    import germane

    if variant == "capture":
        germane.start(database=database, role="capture")
    else:
        germane.start(database=database, base_url=judge_url, api_key="none", judge="quick", embedder="quick-embedder")

    async def observed() -> dict[str, float]:
        return await serve(germane.observe(route="returns")(answer), seconds)

    figures = asyncio.run(observed())
    germane.stop()
    return figures


@contextmanager
def judge() -> Iterator[str]:
    """Run the judge in a separate process and yield its URL."""
    command = [sys.executable, str(HERE / "servers" / "quick_judge.py"), str(LATENCY), str(EMBEDDING_LATENCY)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def main() -> int:
    """Print a table with one line per variant; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--seconds", type=float, default=300, help="seconds per variant; default: 300")
    parser.add_argument("--postgresql", metavar="URL", help="an empty database to measure as well")
    parser.add_argument("--variant", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.variant:
        print(json.dumps(run_variant(given.variant[0], given.seconds, *given.variant[1:])))
        return 0
    from germane.storage import TrackingStore

    missed = 0
    print(f"{RATE} questions per second for {given.seconds:.0f} s, lags in ms (goal: at most {MAX_LAG:.0f})")
    with tempfile.TemporaryDirectory() as folder, judge() as url:
        variants = {
            "without germane": ("bare", "none"),
            "capture only": ("capture", f"sqlite:///{folder}/capture.db"),
            "everything, SQLite": ("everything", f"sqlite:///{folder}/everything.db"),
        }
        if given.postgresql:
            variants["everything, PostgreSQL"] = ("everything", given.postgresql)
        for name, (variant, database) in variants.items():
            if variant == "everything":
                with closing(TrackingStore(database)) as store:
                    store.migrate()
            command = [sys.executable, __file__, "--seconds", str(given.seconds), "--variant", variant, database, url]
            ended = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, cwd=folder)
            figures = json.loads(ended.stdout)
            missed += figures["max"] > MAX_LAG or figures["RSS"] > MAX_RSS
            print(
                f"{name:24} p50 {figures['p50']:5.2f}   p99.9 {figures['p99.9']:6.2f}   max {figures['max']:6.1f}   "
                f"full collections {figures['collections']:3.0f}, longest {figures['pause']:5.1f}   "
                f"RSS {figures['RSS']:4.0f} MB (goal: at most {MAX_RSS:.0f})",
                flush=True,
            )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
