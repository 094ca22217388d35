"""Throughput, CPU and requests of scoring versus a plain client: python benchmarks/scoring.py [EXCHANGES [ROUNDS]].

The monitor scores from SQLite and, with --postgresql URL, also from an empty PostgreSQL database, as in production: it
starts with waiting exchanges, and stops when the last score is written. A round should be long enough that starting and
stopping, which takes about half a second, has little effect. The plain client sends the judge requests that the scorers
send, as recorded for one exchange, without waiting for one before it sends the next; with --embedder local, it also
embeds the same texts. Labels are computed from similarities, so that a score of answer_relevancy takes one request. For
each method, objects that exist before the measurement are exempt from garbage collection, as after germane.start(). The
monitor is measured without and with a sink, to which it writes the scores. The exit code is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import multiprocessing
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import openai
from common import Goals, judge, judge_requests, latest_requests, new_exchange

from germane.exchange import Exchange
from germane.monitor import Monitor, MonitorConfig
from germane.score import Score
from germane.scorers import build_scorers, exchange_concurrency, run_scorer
from germane.scorers.local.minilm.model import MiniLM
from germane.settings import load_settings
from germane.storage import TrackingStore
from germane.tracer import suppress_tracing

IN_FLIGHT = 64
"""Judge requests in flight."""
EMBEDDING_LATENCY = 0.05
"""Latency of the embedder in seconds."""
RECORDED = "0f0f0f0f"
"""The part of the recorded texts that differs between exchanges."""
LEAST_SHARE = 0.92
"""Minimum rate as a share of the plain client's rate."""
LEAST_SHARE_WITH_SINK = 0.97
"""Minimum rate with a sink, as a share of the rate without one."""
CONTEXTS = 3
"""Contexts per exchange."""
MOST_REQUESTS = 1.1
"""Maximum requests, including embeddings, as a multiple of the plain client's."""
WITH_SINK = ", sink"


class Round:
    """Exchanges that no earlier round used, and what was measured."""

    def __init__(self, options: dict[str, Any], exchanges: list[Exchange], requests: list[dict[str, Any]]) -> None:
        self.url: str = options["base_url"]
        self.settings, self.exchanges, self.requests = load_settings(**options), exchanges, requests
        self.seconds = self.cpu_seconds = 0.0

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Measure the elapsed time and this process's CPU time inside the context."""
        gc.collect()
        gc.freeze()
        began, cpu_began = time.perf_counter(), time.process_time()
        yield
        self.seconds, self.cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began


async def bare(measured: Round) -> None:
    """Send only the judge requests, with the openai client, and embed in this process if the scorers do."""
    client = openai.AsyncOpenAI(api_key="none", base_url=measured.url, max_retries=1)
    embedder = MiniLM() if measured.settings.embedder == "local" else None
    waiting = [(exchange, body) for exchange in measured.exchanges for body in measured.requests]

    async def work() -> None:
        while waiting:
            exchange, body = waiting.pop()
            messages = [
                {**message, "content": message["content"].replace(RECORDED, exchange.trace_id[:8])}
                for message in body["messages"]
            ]
            reply = await client.chat.completions.create(**{**body, "messages": messages})
            if embedder is not None and len(reply.choices) > 1:
                questions = [choice.message.content or "" for choice in reply.choices]
                await embedder.embed([exchange.question or "", *questions, exchange.answer or ""])

    async with client:
        with measured.timed():
            await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))
    if embedder is not None:
        await embedder.aclose()


async def scorers(measured: Round) -> None:
    """Score exchanges in memory."""
    scorer_set = build_scorers(measured.settings)
    waiting = [(exchange, scorer) for exchange in measured.exchanges for scorer in scorer_set.scorers]

    async def work() -> None:
        while waiting:
            exchange, scorer = waiting.pop()
            score = await run_scorer(scorer, exchange)
            if score.value is None:
                raise RuntimeError(str(score))

    try:
        with measured.timed(), suppress_tracing():
            await asyncio.gather(*(work() for _ in range(exchange_concurrency(IN_FLIGHT))))
    finally:
        await scorer_set.aclose()


async def monitor(measured: Round) -> None:
    """Score exchanges from a database as in production, until the last row is written."""
    settings, loop, written = measured.settings, asyncio.get_running_loop(), asyncio.Event()
    scorer_set = build_scorers(settings)
    left = len(measured.exchanges) * len(scorer_set.scorers)

    def attach(_: object, scores: Sequence[Score]) -> str:
        nonlocal left
        left -= sum(score.value is not None for score in scores)
        if not left:
            loop.call_soon_threadsafe(written.set)
        return "none"

    with closing(TrackingStore(settings.database, sinks=list(settings.sinks))) as store:
        store.migrate()
        store.exchanges.add(measured.exchanges)
        config = MonitorConfig(
            store, scorer_set.scorers, settings, attach=attach, suppressed=suppress_tracing, close=scorer_set.aclose
        )
        background = Monitor(config)
        with measured.timed():
            background.start()
            await written.wait()
        background.stop()


def accept_everything(port: Any) -> None:
    """Run a server that accepts all requests, and set its port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    port.value = server.server_port
    server.serve_forever()


@contextmanager
def sink() -> Iterator[dict[str, Any]]:
    """Run the backend of a sink in a process of its own, and return the setting."""
    context = multiprocessing.get_context("spawn")
    port = context.Value("i", 0)
    process = context.Process(target=accept_everything, args=(port,), daemon=True)
    process.start()
    while not port.value:
        time.sleep(0.01)
    os.environ["BENCHMARK_SINK"] = f"http://127.0.0.1:{port.value}"
    yield {"bridge": {"type": "webhook", "url": "env:BENCHMARK_SINK"}}
    process.terminate()
    process.join()


def options(given: argparse.Namespace, url: str) -> dict[str, Any]:
    """Return the settings of all methods."""
    return {
        "base_url": url, "api_key": "none", "judge": "quick", "embedder": given.embedder, "scorers": given.scorers,
        "scorer_options": {"answer_relevancy": {"label_from": "answer"}}, "concurrency": IN_FLIGHT, "proxy_cpu": 0,
    }  # fmt: skip


def main() -> int:
    """Print rates, shares and requests; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("exchanges", nargs="?", type=int, default=4000, help="exchanges per round; default: 4000")
    parser.add_argument("rounds", nargs="?", type=int, default=3, help="number of rounds; default: 3")
    parser.add_argument("--postgresql", metavar="URL", help="an empty database on which to measure the monitor as well")
    parser.add_argument("--scorers", nargs="+", default=["answer_relevancy"], help="default: answer_relevancy")
    parser.add_argument("--embedder", choices=("quick-embedder", "local"), default="quick-embedder")
    parser.add_argument("--latency", type=float, default=0.2, help="the judge's latency in seconds; default: 0.2")
    given = parser.parse_args()
    ways = {"plain client": (bare, ""), "scorers": (scorers, "")}
    for name, database in (("monitor", "sqlite:///{folder}/germane.db"), ("monitor, PostgreSQL", given.postgresql)):
        if database:
            ways |= {name: (monitor, database), f"{name}{WITH_SINK}": (monitor, database)}
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    with judge(given.latency, EMBEDDING_LATENCY) as url, sink() as setting:
        recorded = new_exchange(0, contexts=CONTEXTS, trace_id=RECORDED * 4)
        asyncio.run(scorers(Round(options(given, url), [recorded], [])))
        requests = latest_requests(url)
        for _ in range(given.rounds):
            for name, (way, database) in ways.items():
                with tempfile.TemporaryDirectory() as folder:
                    exchanges = [new_exchange(number, contexts=CONTEXTS) for number in range(given.exchanges)]
                    more = {"sinks": setting if name.endswith(WITH_SINK) else {}}
                    if database:
                        more["database"] = database.format(folder=folder)
                    measured = Round({**options(given, url), **more}, exchanges, requests)
                    before = sum(judge_requests(url).values())
                    asyncio.run(way(measured))
                sent = sum(judge_requests(url).values()) - before
                found[name, "rate"].append(given.exchanges / measured.seconds)
                found[name, "CPU"].append(1e3 * measured.cpu_seconds / given.exchanges)
                found[name, "requests"].append(sent / given.exchanges)
    goals = Goals(width=44)
    for name in ways:
        shares = [mine / its for mine, its in zip(found[name, "rate"], found["plain client", "rate"], strict=True)]
        goals.medians(f"{name}: rate", found[name, "rate"], "exchanges/s")
        goals.medians(f"{name}: share of the plain client's rate", shares, least=LEAST_SHARE)
        if name.endswith(WITH_SINK):
            without = found[name.removesuffix(WITH_SINK), "rate"]
            shares = [mine / its for mine, its in zip(found[name, "rate"], without, strict=True)]
            goals.medians(f"{name}: share of the rate without", shares, least=LEAST_SHARE_WITH_SINK)
        goals.medians(f"{name}: CPU time per exchange", found[name, "CPU"], "ms")
        most = MOST_REQUESTS * found["plain client", "requests"][0]
        goals.medians(f"{name}: requests per exchange", found[name, "requests"], most=most)
    return goals.exit_code()


if __name__ == "__main__":
    sys.exit(main())
