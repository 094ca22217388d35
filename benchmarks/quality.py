"""Agreement of the scorers with human labels: python benchmarks/quality.py FOLDER. See docs/research/quality.md.

The folder contains labeled rows as JSONL files: relevancy, noncommittal, faithfulness, context_relevance, multilingual
and adversarial. Each row has id, question, answer, contexts, label, kind, source, group and meta. Without
``--judge-url``, only scorers without a judge and cached replies are measured. Replies are stored in ``--cache``, and an
interrupted run resumes where it stopped. The output consists of the tables of docs/research/quality.md.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from labelled.examples import EXAMPLES
from labelled.report import SEVERAL_RUNS, Results, page, published_peers, read_peer
from labelled.rows import Row, of, read, sampled
from labelled.scoring import FREE, GUARDED, Bench, add_arguments, opened

from germane.errors import ModelError
from germane.scorers import Embedder
from germane.settings import load_settings

SAME = "A good question. There are many sides to this topic, and it depends on the case which of them counts most."
"""The same text for all questions, which answers none of them."""
DIRECT, CONTEXTS = ("direct_relevancy", "guarded_relevancy"), ("context_relevance", GUARDED)
OTHERS = ("question_coverage", "intent_match", "combined_relevancy")


@dataclass(frozen=True)
class Step:
    """Scorers that run on whole groups of one set."""

    scorers: tuple[str, ...]
    set: str
    origin: str | None = None
    groups: int | None = None
    """Maximum number of groups per source; None for all."""
    kinds: tuple[str, ...] = ()

    def rows(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows of the step."""
        return sampled(of(rows, self.set, origin=self.origin, kinds=self.kinds), self.groups)


STEPS = (
    Step(DIRECT, "relevancy", "SelQA"),
    Step(DIRECT, "relevancy", "CLAPnq", 20),
    Step(DIRECT, "relevancy", "ALCE", 12),
    Step(DIRECT, "relevancy", "MTRAG", 8),
    Step(DIRECT, "adversarial", "CLAPnq", 6),
    Step(DIRECT, "adversarial", "BIPIA + CLAPnq", 6),
    Step(DIRECT, "constant", groups=16),
    Step(DIRECT, "multilingual", groups=12),
    Step((SEVERAL_RUNS,), "relevancy", "SelQA"),
    Step((SEVERAL_RUNS,), "relevancy", "CLAPnq", 12),
    Step((SEVERAL_RUNS,), "relevancy", "ALCE", 8),
    Step((SEVERAL_RUNS,), "relevancy", "MTRAG", 6),
    Step((SEVERAL_RUNS,), "adversarial", "CLAPnq", 3),
    Step((SEVERAL_RUNS,), "constant", groups=8),
    Step(CONTEXTS, "context_relevance", "SQuAD1.1", 14),
    Step(CONTEXTS, "context_relevance", "CLAPnq", 24, kinds=("answers", "does_not")),
    Step(("faithfulness",), "faithfulness", groups=9),
    Step(OTHERS, "relevancy", "SelQA", 6),
    Step(("answer_quality",), "examples"),
)
"""Judges are slow, so most steps use only the first groups in hash order."""


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_arguments(parser, "quality.sqlite")
    parser.add_argument("--half", choices=("tune", "report", "both"), default="report")
    parser.add_argument("--scorer", action="append", help="only these judge-based scorers; repeatable")
    parser.add_argument("--sample", type=int, help="maximum number of groups per source")
    parser.add_argument("--runs", type=int, default=3, help="number of answer_relevancy runs")
    parser.add_argument("--output", type=Path, help="write the tables to this file")
    parser.add_argument(
        "--peer", action="append", default=[], metavar="NAME=FILE",
        help="scores from another library, as JSONL with id and score",
    )  # fmt: skip
    parser.add_argument(
        "--rows", metavar="SET[:ORIGIN[:GROUPS]]", help="print rows for another library to score, and exit"
    )
    return parser.parse_args(given)


def with_constants(rows: Sequence[Row]) -> list[Row]:
    """Return the rows, the examples, and each CLAPnq gold answer with the constant text for the same question."""
    gold = of(rows, "relevancy", origin="CLAPnq", kinds=("gold_answer",))
    pairs = [(row, replace(row, answer=SAME, label=0.0, kind="constant")) for row in gold]
    constants = [replace(row, id=f"constant-{row.kind}-{row.id}", set="constant") for pair in pairs for row in pair]
    return [*rows, *constants, *(row for example in EXAMPLES for row in example.rows)]


async def collect(bench: Bench, rows: Sequence[Row], options: argparse.Namespace) -> Results:
    """Run all steps."""
    results = Results(rows)
    results.found = {(name, 0): found for name, found in (await bench.score(FREE, rows)).items()}
    for run in range(options.runs):
        for step in STEPS:
            names = [name for name in step.scorers if run == 0 or name == SEVERAL_RUNS]
            names = [name for name in names if not options.scorer or name in options.scorer]
            some = step.rows(rows)
            if options.sample is not None:
                some = sampled(some, options.sample)
            # Examples are cheap, so that each scorer runs on all of them.
            some += [row for row in of(rows, "examples") if row not in some]
            for name, found in (await bench.score(names, some, run=run)).items():
                results.found.setdefault((name, run), {}).update(found)
    return results


async def measure(options: argparse.Namespace, rows: Sequence[Row], given: Embedder | None) -> str:
    """Send the missing requests and return the tables."""
    # This benchmark measures values; benchmarks/labels.py measures labels.
    no_ratings = {SEVERAL_RUNS: {"label_from": "questions"}}
    settings = load_settings(judge=options.judge, base_url=options.judge_url, scorer_options=no_ratings)
    async with opened(options, given) as (caching_judge, embedder):
        bench = Bench(settings, caching_judge, embedder)
        results = await collect(bench, with_constants(rows), options)
        results.peers = published_peers(results.rows) | options.peers
        judge = await bench.judge.identify()
        await bench.embedder.aclose()
        return f"Judge: {judge}. Embedder: `{embedder.model}`. {len(rows)} rows.\n\n{page(results)}"


def main(given: Sequence[str] | None = None, embedder: Embedder | None = None) -> int:
    """Run the measurement, by default with the embedded MiniLM. Return 0 even without rows or a model."""
    options = arguments(given)
    every = read(options.folder) if options.folder.is_dir() else []
    rows = [row for row in every if options.half in ("both", row.half)]
    if not every:
        print(f"skipped: {options.folder} contains no labeled rows (relevancy.jsonl and others)")
    elif options.rows:
        name, origin, groups = [*options.rows.split(":"), "", ""][:3]
        found = sampled(of(rows, name, origin=origin or None), int(groups) if groups else None)
        print("\n".join(json.dumps(vars(row)) for row in found))
    else:
        files = dict(peer.split("=", 1) for peer in options.peer)
        options.peers = {name: read_peer(Path(file).read_text(encoding="utf-8")) for name, file in files.items()}
        try:
            text = asyncio.run(measure(options, rows, embedder))
            options.output.write_text(text, encoding="utf-8") if options.output else print(text)
        except ModelError as error:
            print(f"skipped: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
