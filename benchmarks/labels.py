"""Agreement of labels with human judgments. See docs/calibration.md.

The folder contains the same labeled rows as for ``quality.py``. Good answers are gold answers from SelQA and CLAPnq,
and the better answers of the examples. Bad answers are non-answers on the same topic: sentences from the same document
(SelQA), gold answers to similar questions (CLAPnq), and the worse answers of the examples. Goals: 90% of the good
answers are in the two highest bands, and 90% of the bad answers in the two lowest.

Without ``--judge-url``, only ``question_answer_similarity`` with the embedded embedder is measured, calibrated with the
good answers of the other half as with a user's own exchanges. With it, every ``label_from`` option of
``answer_relevancy`` is measured instead. Replies are stored in ``--cache``.

Run: python benchmarks/labels.py FOLDER [--half tune|report] [--judge-url URL --judge MODEL]
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from labelled.bench import Bench, Outcome
from labelled.examples import EXAMPLES
from labelled.judge import KeptEmbedder, KeptJudge
from labelled.kept import Kept
from labelled.rows import Row, exchange, read
from labelled.slices import of
from labelled.text import table

from germane.calibration import Calibration
from germane.scorers import Embedder, apply_calibration, measure_cosine_pairs
from germane.scorers.judge.client import ModelServer
from germane.scorers.judge.openai_judge import OpenAIJudge
from germane.scorers.local.minilm import MiniLM
from germane.settings import load_settings

CACHE = Path.home() / ".cache" / "germane" / "labels.sqlite"
GOAL = 0.9
HIGH, LOW = ("relevant", "mostly_relevant"), ("partly_relevant", "irrelevant", "noncommittal")
TIMEOUT = 600.0
SIMILARITY, RELEVANCY = "question_answer_similarity", "answer_relevancy"


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--half", choices=("tune", "report"), default="report")
    parser.add_argument("--judge-url", help="an OpenAI-compatible server")
    parser.add_argument("--judge", default="qwen", help="model name on that server")
    parser.add_argument("--cache", type=Path, default=CACHE)
    return parser.parse_args(given)


def example_rows() -> list[Row]:
    """Return the answers of the examples about relevancy."""
    return [row for example in EXAMPLES if RELEVANCY in example.scorers for row in example.rows]


def select_rows(folder: Path, half: str) -> dict[str, list[Row]]:
    """Return the rows by source."""
    rows = [row for row in read(folder) if row.half == half]
    return {
        "SelQA": of(rows, "relevancy", origin="SelQA"),
        "CLAPnq": of(rows, "relevancy", origin="CLAPnq", kinds=("gold_answer", "offtopic_hard")),
        "examples": example_rows(),
    }


def share(rows: Sequence[Row], found: dict[str, Outcome], *, good: bool) -> str:
    """Return the number of good answers in the two highest bands, or of bad answers in the two lowest bands."""
    labels = [found[row.id].score.label for row in rows if (row.label > 0.5) is good]
    hits = sum(label in (HIGH if good else LOW) for label in labels)
    missed = "" if hits >= GOAL * len(labels) else ", missed"
    return f"{hits} of {len(labels)} ({hits / len(labels):.2f}{missed})"


def print_shares(title: str, rows: dict[str, list[Row]], found: dict[str, Outcome]) -> None:
    """Print the shares per source and over all sources."""
    total = [row for part in rows.values() for row in part]
    lines = [
        (name, share(part, found, good=True), share(part, found, good=False))
        for name, part in [*rows.items(), ("all", total)]
    ]
    print(f"\n{title}\n\n{table(('source', 'good answers: two highest', 'bad answers: two lowest'), lines)}")


def print_examples(found: dict[str, Outcome]) -> None:
    """Print the raw value and the label of each example."""
    lines = []
    for row in example_rows():
        score = found[row.id].score
        value = "-" if score.value is None else f"{score.value:.2f}"
        lines.append((row.question, row.answer, value, score.label or str(score.reason)))
    print(f"\n{table(('question', 'answer', 'value', 'label'), lines)}")


async def calibrations(options: argparse.Namespace, embedder: Embedder) -> Mapping[tuple[str, str], Calibration]:
    """Measure the calibrations on the good answers of the half that is not reported."""
    rows = select_rows(options.folder, "tune" if options.half == "report" else "report")
    exchanges = [exchange(row) for part in rows.values() for row in part if row.label > 0.5]
    measured = [pairs.to_calibration(datetime.now(UTC)) for pairs in await measure_cosine_pairs(exchanges, embedder)]
    return {(each.embedder, each.scorer): each for each in measured}


def calibrate(found: dict[str, Outcome], measured: Mapping[tuple[str, str], Calibration]) -> dict[str, Outcome]:
    """Return the outcomes with the labels for their calibrated values."""
    return {id_: replace(each, score=apply_calibration(each.score, measured)) for id_, each in found.items()}


async def measure(options: argparse.Namespace) -> None:
    """Score the rows with each rule and print the tables."""
    rows = select_rows(options.folder, options.half)
    everything = [row for part in rows.values() for row in part]
    kept, model = Kept(options.cache), MiniLM()
    asks = bool(options.judge_url)
    server = OpenAIJudge(options.judge, ModelServer(base_url=options.judge_url, timeout=TIMEOUT)) if asks else None
    judge = KeptJudge(kept, options.judge, server)
    print(f"{options.half} half; goals: {GOAL} and {GOAL}")
    try:
        for rule in ("guarded", "answer", "questions") if asks else ("",):
            name = RELEVANCY if rule else SIMILARITY
            settings = load_settings(judge=options.judge, scorer_options={RELEVANCY: {"label_from": rule or None}})
            bench = Bench(settings, judge, KeptEmbedder(kept, model))
            found = (await bench.score((name,), everything))[name].by_id
            if not rule:
                found = calibrate(found, await calibrations(options, bench.embedder))
            print_shares(f"{name}, label_from = {rule!r}" if rule else name, rows, found)
            print_examples(found)
            await bench.embedder.aclose()
    finally:
        await model.aclose()
        kept.close()


def main() -> None:
    """Measure the labels, if the rows exist."""
    options = arguments()
    if not options.folder.is_dir():
        raise SystemExit(f"{options.folder} does not exist; nothing measured")
    asyncio.run(measure(options))


if __name__ == "__main__":
    main()
