"""Agreement of the scorers with human labels: python benchmarks/quality.py FOLDER. See docs/quality.md.

The folder contains labeled rows as JSONL files: relevancy, noncommittal, faithfulness, context_relevance, multilingual
and adversarial. Each row has id, question, answer, contexts, label, kind, source, group and meta. Without
``--judge-url``, only scorers without a judge and cached replies are measured. Replies are stored in ``--cache``: an
interrupted run resumes where it stopped, and the report can be rendered at any time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from labelled.bench import Bench
from labelled.judge import KeptEmbedder, KeptJudge
from labelled.kept import Kept
from labelled.page import Facts, logged, page
from labelled.plan import Step, constant_rows, plan
from labelled.results import Results, collect, example_rows, published_peers, read_peer
from labelled.rows import Row, read, sampled
from labelled.slices import of

from germane.errors import ModelError
from germane.scorers import Embedder
from germane.scorers.judge.client import ModelServer
from germane.scorers.judge.openai_judge import OpenAIJudge
from germane.scorers.local.minilm import MiniLM
from germane.scorers.refusals.rules import REFUSAL_RULES_HASH
from germane.settings import load_settings

PAGE = Path(__file__).parents[1] / "docs" / "quality.md"
CACHE = Path.home() / ".cache" / "germane" / "quality.sqlite"
READ, WRITE = 40.0, 10.0
"""Input and output tokens that the judge processes per second, for the forecast."""
TIMEOUT = 600.0
PEER, KNOWN_AS = "peer ", "known as "
"""Prefixes of note names."""


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--half", choices=("tune", "report", "both"), default="report")
    parser.add_argument("--scorer", action="append", help="only these judge-based scorers; repeatable")
    parser.add_argument("--judge-url", help="an OpenAI-compatible server")
    parser.add_argument("--judge", default="qwen", help="model name on that server")
    parser.add_argument(
        "--judge-is", default="", help="description of the judge in the report, which is stored; default: its name"
    )
    parser.add_argument("--sample", type=int, help="maximum number of groups per source")
    parser.add_argument("--runs", type=int, default=3, help="number of answer_relevancy runs")
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--output", type=Path, help="default: docs/quality.md for the report half, otherwise none")
    parser.add_argument(
        "--peer",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="scores from another library, as JSONL with id and score; they are stored",
    )
    parser.add_argument(
        "--rows", metavar="SET[:ORIGIN[:GROUPS]]", help="print rows for another library to score, and exit"
    )
    parser.add_argument("--seconds", type=float, help="time after which no more requests are sent")
    parser.add_argument("--commit", help="commit named in the log; default: the checked-out commit")
    parser.add_argument("--plan", action="store_true", help="print the requests that would be sent, and exit")
    parser.add_argument("--render", action="store_true", help="render the report without sending requests")
    return parser.parse_args(given)


def chosen(steps: Sequence[Step], options: argparse.Namespace) -> list[Step]:
    """Restrict the steps to the selected scorers and number of groups."""
    named = [replace(step, scorers=tuple(n for n in step.scorers if n in options.scorer)) for step in steps] if (
        options.scorer
    ) else list(steps)  # fmt: skip
    if options.sample is not None:
        named = [replace(step, groups=min(options.sample, step.groups or options.sample)) for step in named]
    return [step for step in named if step.scorers]


def printed(rows: Sequence[Row], which: str) -> str:
    """Return the rows selected by SET[:ORIGIN[:GROUPS]] as JSONL."""
    name, origin, groups = [*which.split(":"), "", ""][:3]
    found = sampled(of(rows, name, origin=origin or None), int(groups) if groups else None)
    return "\n".join(json.dumps(vars(row)) for row in found)


async def ask(bench: Bench, rows: Sequence[Row], steps: Sequence[Step]) -> None:
    """Run the examples, then the steps in order, until the deadline."""
    started = time.monotonic()
    await examples(bench, steps)
    for step in steps:
        if not bench.judge.may_ask:
            break
        found = await bench.score(step.scorers, step.rows(rows), run=step.run)
        left = len({key for outcomes in found.values() for key in outcomes.missing})
        print(f"{time.monotonic() - started:6.0f} s  {step.title}: {left} requests missing", flush=True)


async def examples(bench: Bench, steps: Sequence[Step]) -> None:
    """Score the examples."""
    await bench.score(tuple(dict.fromkeys(name for step in steps for name in step.scorers)), example_rows())


async def forecast(bench: Bench, rows: Sequence[Row], steps: Sequence[Step]) -> None:
    """Print the missing requests of each step. If requests depend on each other, only the first one is known."""
    counted_keys: set[str] = set()
    total = 0.0
    for step in steps:
        found = await bench.score(step.scorers, step.rows(rows), run=step.run)
        new = {
            key: each
            for outcomes in found.values()
            for key, each in outcomes.missing.items()
            if key not in counted_keys
        }
        seconds = sum(each.input_tokens / READ + each.output_tokens / WRITE for each in new.values())
        counted_keys, total = counted_keys | set(new), total + seconds
        print(f"{len(step.rows(rows)):4} rows {len(new):4} requests {seconds:6.0f} s {total:6.0f} s  {step.title}")


def stamp(options: argparse.Namespace) -> str:
    """Return the beginning of a log line."""
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {options.commit or commit()}, {options.half} half"


def commit() -> str:
    """Return the checked-out commit."""
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or "unknown"


def remember(kept: Kept, options: argparse.Namespace) -> None:
    """Store the notes that later renderings need."""
    if options.judge_is:
        kept.put_note(f"{KNOWN_AS}{options.judge}", options.judge_is)
    for name, _, file in (peer.partition("=") for peer in options.peer):
        kept.put_note(f"{PEER}{name}", Path(file).read_text(encoding="utf-8"))


def render(results: Results, kept: Kept, options: argparse.Namespace, embedder: str) -> None:
    """Write the report, including the runs listed in the previous one."""
    output = options.output or (PAGE if options.half == "report" else None)
    if output is None:
        return
    before = logged(output.read_text(encoding="utf-8")) if output.is_file() else []
    name = kept.served(options.judge)
    known_as = kept.note(f"{KNOWN_AS}{options.judge}") or (f"`{name}`." if name else "none.")
    if not any(REFUSAL_RULES_HASH in line for line in [*before, *kept.log()]):
        kept.put_log(f"{stamp(options)}: scorers without a judge, refusal rules {REFUSAL_RULES_HASH}")
    log = list(dict.fromkeys([*before, *kept.log()]))
    output.write_text(page(results, Facts(options.half, name, known_as, embedder, log)), encoding="utf-8")
    print(f"written: {output}")


async def measure(options: argparse.Namespace, every: Sequence[Row], model: Embedder) -> None:
    """Send the missing requests and write the report."""
    rows = [row for row in every if options.half in ("both", row.half)]
    kept = Kept(options.cache)
    remember(kept, options)
    asks = bool(options.judge_url) and not (options.render or options.plan)
    deadline = None if options.seconds is None else time.monotonic() + options.seconds
    server = OpenAIJudge(options.judge, ModelServer(base_url=options.judge_url, timeout=TIMEOUT)) if asks else None
    judge = KeptJudge(kept, options.judge, server, deadline=deadline)
    # This benchmark measures values; benchmarks/labels.py measures labels.
    no_ratings = {"answer_relevancy": {"label_from": "questions"}}
    settings = load_settings(judge=options.judge, base_url=options.judge_url, scorer_options=no_ratings)
    bench = Bench(settings, judge, KeptEmbedder(kept, model))
    steps = chosen(plan(options.runs), options)
    try:
        if options.plan:
            await forecast(bench, [*rows, *constant_rows(rows)], steps)
            return
        if asks:
            await run(bench, kept, options, [*rows, *constant_rows(rows)], steps)
        bench.judge.judge = None
        results = await collect(bench, every, rows, plan(options.runs))
        noted = {name: read_peer(text) for name, text in kept.notes(PEER).items()}
        results.peers = {**published_peers(results.rows), **noted}
        render(results, kept, options, model.model)
    finally:
        await bench.embedder.aclose()
        if server is not None:
            await server.aclose()
        kept.close()


async def run(
    bench: Bench, kept: Kept, options: argparse.Namespace, rows: Sequence[Row], steps: Sequence[Step]
) -> None:
    """Send the requests, and log the run if it used the report half."""
    if options.half != "tune":
        names = ", ".join(dict.fromkeys(name for step in steps for name in step.scorers))
        size = f", at most {options.sample} groups per source" if options.sample else ""
        kept.put_log(f"{stamp(options)}: {names}{size}")
    await ask(bench, rows, steps)


async def with_minilm(options: argparse.Namespace, every: Sequence[Row]) -> None:
    """Run the measurement with the embedded MiniLM."""
    model = MiniLM()
    try:
        await measure(options, every, model)
    finally:
        await model.aclose()


def main(given: Sequence[str] | None = None, embedder: Embedder | None = None) -> int:
    """Run the measurement, by default with the embedded MiniLM. Return 0 even without rows or a model."""
    options = arguments(given)
    every = read(options.folder) if options.folder.is_dir() else []
    if not every:
        print(f"skipped: {options.folder} contains no labeled rows (relevancy.jsonl and others)")
        return 0
    if options.rows:
        print(printed([row for row in every if options.half in ("both", row.half)], options.rows))
        return 0
    try:
        asyncio.run(measure(options, every, embedder) if embedder else with_minilm(options, every))
    except ModelError as error:
        print(f"skipped: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
