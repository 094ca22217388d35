"""Lag of an application's event loop with and without germane: python benchmarks/loop.py [SECONDS [SLICES]].

An asyncio application answers 50 questions a second, each in 0.2 s of waiting. It runs alternately without germane and
with it: captured, stored in SQLite, sampled and scored by a judge of 0.2 s in another process. A task that sleeps for a
millisecond measures by how much it wakes up too late. Each slice is a new process; its first three seconds, in which
modules are imported, are not measured. By default, ten slices of 30 s are measured: five minutes, half of them with
germane. Full garbage collections are counted, because they stop all threads.

Goal: the 99.9th percentile with germane is at most 5 ms higher. The exit code is 1 if it is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from common import ANSWER, Goals, judge

RATE = 50
"""Questions per second."""
LATENCY = 0.2
WARM_UP = 3.0
MOST_MORE_LAG = 5.0
"""Maximum increase of the 99.9th percentile, in ms."""


async def answer(question: str) -> str:
    """Return an answer after a while, like a handler that waits for a model."""
    await asyncio.sleep(LATENCY)
    return ANSWER.format(number=question)


async def serve(handler: Any, seconds: float) -> dict[str, Any]:
    """Answer questions, and return the lag in seconds, the full collections and the CPU time of the measured time."""
    loop, tasks, lags, pauses = asyncio.get_running_loop(), set[Any](), list[float](), list[float]()
    begun = loop.time()
    measured_from = begun + WARM_UP

    async def watch() -> None:
        while True:
            due = loop.time() + 0.001
            await asyncio.sleep(0.001)
            if due >= measured_from:
                lags.append(max(0.0, loop.time() - due))

    def on_collection(phase: str, info: dict[str, int]) -> None:
        if info["generation"] == 2 and loop.time() >= measured_from:
            pauses.append(-time.perf_counter()) if phase == "start" else pauses.append(
                pauses.pop() + time.perf_counter()
            )

    gc.callbacks.append(on_collection)
    watching, cpu_began = asyncio.create_task(watch()), time.process_time()
    for number in range(int((seconds + WARM_UP) * RATE)):
        await asyncio.sleep(max(0.0, begun + number / RATE - loop.time()))
        task = asyncio.create_task(handler(f"How long do I have to return a pair of shoes, number {number}?"))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    watching.cancel()
    await asyncio.gather(*tasks)
    return {"lags": lags, "pauses": pauses, "cpu": (time.process_time() - cpu_began) / (seconds + WARM_UP)}


def run_slice(method: str, seconds: float, url: str) -> None:
    """Measure one method in this process, and print the result."""
    if method == "plain":
        print(json.dumps(asyncio.run(serve(answer, seconds))))
        return
    import germane

    with tempfile.TemporaryDirectory() as folder:
        germane.start(
            database=f"sqlite:///{Path(folder) / 'loop.db'}", base_url=url, api_key="none", judge="quick",
            embedder="quick-embedder", scorers=["answer_relevancy"], sample_rate=1.0,
        )  # fmt: skip
        print(json.dumps(asyncio.run(serve(germane.observe(answer), seconds))))
        germane.stop(drain_timeout=0)


def percentile(values: list[float], share: float) -> float:
    """Return a percentile of values, in milliseconds."""
    return 1000 * sorted(values)[min(int(share * len(values)), len(values) - 1)]


def main() -> int:
    """Run the slices in turn and print the figures of each method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seconds", nargs="?", type=float, default=30)
    parser.add_argument("slices", nargs="?", type=int, default=5, help="slices of each method")
    parser.add_argument("--slice", nargs=2, metavar=("METHOD", "URL"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.slice:
        run_slice(options.slice[0], options.seconds, options.slice[1])
        return 0
    found: dict[str, list[dict[str, Any]]] = {"plain": [], "germane": []}
    with judge(LATENCY) as url:
        for _ in range(options.slices):
            for method, slices in found.items():
                command = [sys.executable, __file__, str(options.seconds), "--slice", method, url]
                slices.append(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout))
    print(f"{'':8} {'p50 ms':>7} {'p99':>7} {'p99.9':>7} {'max':>7} {'full gc':>8} {'longest':>8} {'CPU':>6}")
    tails = {}
    for method, slices in found.items():
        lags = [lag for one in slices for lag in one["lags"]]
        pauses = [pause for one in slices for pause in one["pauses"]]
        tails[method] = percentile(lags, 0.999)
        figures = " ".join(f"{percentile(lags, share):7.2f}" for share in (0.5, 0.99, 0.999, 1))
        cpu = median(one["cpu"] for one in slices)
        print(f"{method:8} {figures} {len(pauses):8} {1000 * max(pauses, default=0):6.1f}ms {cpu:6.1%}")
    goals = Goals()
    goals.line("p99.9 with germane minus p99.9 without", tails["germane"] - tails["plain"], "ms", most=MOST_MORE_LAG)
    return goals.exit_code()


if __name__ == "__main__":
    sys.exit(main())
