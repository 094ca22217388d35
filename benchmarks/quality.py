"""What the scores are worth beside human labels: python benchmarks/quality.py FOLDER, see docs/quality.md.

The folder holds labelled rows as JSONL: relevancy, noncommittal, faithfulness, context_relevance, multilingual and
adversarial, each row with id, question, answer, contexts, label, kind, source, group and meta. Without ``--judge-url``
only what needs no judge is measured, beside what the cache knows. Replies are kept in ``--cache``: a run that was
interrupted goes on where it stopped, and the page can be rendered at any time.
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
from germane.scorers import Embedder, OpenAIJudge, Server
from germane.scorers.minilm import MiniLM
from germane.scorers.noncommittal import RULES
from germane.settings import load

PAGE = Path(__file__).parents[1] / "docs" / "quality.md"
CACHE = Path.home() / ".cache" / "germane" / "quality.sqlite"
READ, WRITE = 40.0, 10.0
"""For the forecast: tokens that the judge reads and writes a second."""
TIMEOUT = 600.0
PEER, KNOWN_AS = "peer ", "known as "
"""What the names of notes begin with."""


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--half", choices=("tune", "report", "both"), default="report")
    parser.add_argument("--scorer", action="append", help="only these judged scorers; may be repeated")
    parser.add_argument("--judge-url", help="an OpenAI-compatible server")
    parser.add_argument("--judge", default="qwen", help="the model's name there")
    parser.add_argument("--judge-is", default="", help="what the page calls it; kept; default: its name")
    parser.add_argument("--sample", type=int, help="at most so many groups of each source")
    parser.add_argument("--runs", type=int, default=3, help="of answer_relevancy")
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--output", type=Path, help="default: docs/quality.md for the report half, else nothing")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=FILE", help="JSONL of id and score; kept")
    parser.add_argument(
        "--rows", metavar="SET[:ORIGIN[:GROUPS]]", help="print rows for another library to score, and do nothing else"
    )
    parser.add_argument("--seconds", type=float, help="ask no more after so long")
    parser.add_argument("--commit", help="what the log calls the code that runs; default: the commit checked out")
    parser.add_argument("--plan", action="store_true", help="print what would be asked, and ask nothing")
    parser.add_argument("--render", action="store_true", help="ask nothing")
    return parser.parse_args(given)


def chosen(steps: Sequence[Step], options: argparse.Namespace) -> list[Step]:
    """Return the steps for the scorers that are wanted, of no more groups than are wanted."""
    named = [replace(step, scorers=tuple(n for n in step.scorers if n in options.scorer)) for step in steps] if (
        options.scorer
    ) else list(steps)  # fmt: skip
    if options.sample is not None:
        named = [replace(step, groups=min(options.sample, step.groups or options.sample)) for step in named]
    return [step for step in named if step.scorers]


def printed(rows: Sequence[Row], which: str) -> str:
    """Return rows as JSONL: those of a set, of an origin, of its first so many groups."""
    name, origin, groups = [*which.split(":"), "", ""][:3]
    found = sampled(of(rows, name, origin=origin or None), int(groups) if groups else None)
    return "\n".join(json.dumps(vars(row)) for row in found)


async def ask(bench: Bench, rows: Sequence[Row], steps: Sequence[Step]) -> None:
    """Take the steps in their order, the examples first, as long as there is time."""
    started = time.monotonic()
    await examples(bench, steps)
    for step in steps:
        if not bench.judge.may_ask:
            break
        found = await bench.score(step.scorers, step.rows(rows), run=step.run)
        left = len({key for outcomes in found.values() for key in outcomes.missing})
        print(f"{time.monotonic() - started:6.0f} s  {step.title}: {left} left", flush=True)


async def examples(bench: Bench, steps: Sequence[Step]) -> None:
    """Ask about the examples."""
    await bench.score(tuple(dict.fromkeys(name for step in steps for name in step.scorers)), example_rows())


async def forecast(bench: Bench, rows: Sequence[Row], steps: Sequence[Step]) -> None:
    """Print what each step would still ask; of requests that follow from others, only the first is known."""
    told: set[str] = set()
    total = 0.0
    for step in steps:
        found = await bench.score(step.scorers, step.rows(rows), run=step.run)
        new = {key: each for outcomes in found.values() for key, each in outcomes.missing.items() if key not in told}
        seconds = sum(each.input_tokens / READ + each.output_tokens / WRITE for each in new.values())
        told, total = told | set(new), total + seconds
        print(f"{len(step.rows(rows)):4} rows {len(new):4} requests {seconds:6.0f} s {total:6.0f} s  {step.title}")


def stamp(options: argparse.Namespace) -> str:
    """Return how a line of the log begins."""
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {options.commit or commit()}, {options.half} half"


def commit() -> str:
    """Return the commit that is checked out."""
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or "unknown"


def remember(kept: Kept, options: argparse.Namespace) -> None:
    """Keep what the page must know later, too."""
    if options.judge_is:
        kept.put_note(f"{KNOWN_AS}{options.judge}", options.judge_is)
    for name, _, file in (peer.partition("=") for peer in options.peer):
        kept.put_note(f"{PEER}{name}", Path(file).read_text(encoding="utf-8"))


def render(results: Results, kept: Kept, options: argparse.Namespace, embedder: str) -> None:
    """Write the page, with the runs that it told of before."""
    output = options.output or (PAGE if options.half == "report" else None)
    if output is None:
        return
    before = logged(output.read_text(encoding="utf-8")) if output.is_file() else []
    name = kept.served(options.judge)
    known_as = kept.note(f"{KNOWN_AS}{options.judge}") or (f"`{name}`." if name else "none.")
    if not any(RULES in line for line in [*before, *kept.log()]):
        kept.put_log(f"{stamp(options)}: rules for noncommittal answers {RULES}, and what asks no judge")
    log = list(dict.fromkeys([*before, *kept.log()]))
    output.write_text(page(results, Facts(options.half, name, known_as, embedder, log)), encoding="utf-8")
    print(f"written: {output}")


async def measure(options: argparse.Namespace, every: Sequence[Row], model: Embedder) -> None:
    """Ask what is to be asked, and write the page."""
    rows = [row for row in every if options.half in ("both", row.half)]
    kept = Kept(options.cache)
    remember(kept, options)
    asks = bool(options.judge_url) and not (options.render or options.plan)
    deadline = None if options.seconds is None else time.monotonic() + options.seconds
    server = OpenAIJudge(options.judge, Server(base_url=options.judge_url, timeout=TIMEOUT)) if asks else None
    judge = KeptJudge(kept, options.judge, server, deadline=deadline)
    bench = Bench(load(judge=options.judge, base_url=options.judge_url), judge, KeptEmbedder(kept, model))
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
    """Ask, and note the run where it saw the half that is reported."""
    if options.half != "tune":
        names = ", ".join(dict.fromkeys(name for step in steps for name in step.scorers))
        size = f", at most {options.sample} groups a source" if options.sample else ""
        kept.put_log(f"{stamp(options)}: {names}{size}")
    await ask(bench, rows, steps)


async def with_minilm(options: argparse.Namespace, every: Sequence[Row]) -> None:
    """Measure with the embedded embedder."""
    model = MiniLM()
    try:
        await measure(options, every, model)
    finally:
        await model.aclose()


def main(given: Sequence[str] | None = None, embedder: Embedder | None = None) -> int:
    """Measure, with the embedded embedder unless one is given; return 0 also when there is nothing to measure with."""
    options = arguments(given)
    every = read(options.folder) if options.folder.is_dir() else []
    if not every:
        print(f"skipped: {options.folder} holds no labelled rows (relevancy.jsonl and the like)")
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
