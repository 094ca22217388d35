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
from datetime import UTC, datetime
from pathlib import Path

from labelled.examples import EXAMPLES
from labelled.report import table
from labelled.rows import Row, exchange, of, read
from labelled.scoring import SIMILARITY, Bench, add_arguments, opened

from germane.calibration import Calibration
from germane.score import Score
from germane.scorers import Embedder, apply_calibration, measure_cosine_pairs
from germane.settings import load_settings

GOAL = 0.9
HIGH, LOW = ("relevant", "mostly_relevant"), ("partly_relevant", "irrelevant", "noncommittal")
RELEVANCY = "answer_relevancy"
EXAMPLE_ROWS = [row for example in EXAMPLES if RELEVANCY in example.scorers for row in example.rows]


def select_rows(folder: Path, half: str) -> dict[str, list[Row]]:
    """Return the rows by source."""
    rows = [row for row in read(folder) if row.half == half]
    return {
        "SelQA": of(rows, "relevancy", origin="SelQA"),
        "CLAPnq": of(rows, "relevancy", origin="CLAPnq", kinds=("gold_answer", "offtopic_hard")),
        "examples": EXAMPLE_ROWS,
    }


def share(rows: Sequence[Row], found: Mapping[str, Score], *, good: bool) -> str:
    """Return the number of good answers in the two highest bands, or of bad answers in the two lowest bands."""
    labels = [found[row.id].label for row in rows if (row.label > 0.5) is good]
    hits = sum(label in (HIGH if good else LOW) for label in labels)
    missed = "" if hits >= GOAL * len(labels) else ", missed"
    return f"{hits} of {len(labels)} ({hits / len(labels):.2f}{missed})"


def print_tables(title: str, rows: dict[str, list[Row]], found: Mapping[str, Score]) -> None:
    """Print the shares per source and over all sources, and the value and the label of each example."""
    parts = [*rows.items(), ("all", [row for part in rows.values() for row in part])]
    lines = [(name, share(part, found, good=True), share(part, found, good=False)) for name, part in parts]
    print(f"\n{title}\n\n{table(('source', 'good answers: two highest', 'bad answers: two lowest'), lines)}")
    examples = []
    for row in EXAMPLE_ROWS:
        score = found[row.id]
        value = "-" if score.value is None else f"{score.value:.2f}"
        examples.append((row.question, row.answer, value, score.label or str(score.reason)))
    print(f"\n{table(('question', 'answer', 'value', 'label'), examples)}")


async def calibrations(rows: dict[str, list[Row]], embedder: Embedder) -> Mapping[tuple[str, str], Calibration]:
    """Measure the calibrations on good answers."""
    exchanges = [exchange(row) for part in rows.values() for row in part if row.label > 0.5]
    measured = [pairs.to_calibration(datetime.now(UTC)) for pairs in await measure_cosine_pairs(exchanges, embedder)]
    return {(each.embedder, each.scorer): each for each in measured}


async def measure(options: argparse.Namespace) -> None:
    """Score the rows with each rule and print the tables."""
    rows = select_rows(options.folder, options.half)
    everything = [row for part in rows.values() for row in part]
    print(f"{options.half} half; goals: {GOAL} and {GOAL}")
    async with opened(options) as (judge, embedder):
        for rule in ("guarded", "answer", "questions") if options.judge_url else ("",):
            name = RELEVANCY if rule else SIMILARITY
            settings = load_settings(judge=options.judge, scorer_options={RELEVANCY: {"label_from": rule or None}})
            bench = Bench(settings, judge, embedder)
            found = {id_: each.score for id_, each in (await bench.score((name,), everything))[name].items()}
            if not rule:
                other = select_rows(options.folder, "tune" if options.half == "report" else "report")
                measured = await calibrations(other, bench.embedder)
                found = {id_: apply_calibration(score, measured) for id_, score in found.items()}
            print_tables(f"{name}, label_from = {rule!r}" if rule else name, rows, found)
            await bench.embedder.aclose()


def main() -> None:
    """Measure the labels, if the rows exist."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_arguments(parser, "labels.sqlite")
    parser.add_argument("--half", choices=("tune", "report"), default="report")
    options = parser.parse_args()
    if not options.folder.is_dir():
        raise SystemExit(f"{options.folder} does not exist; nothing measured")
    asyncio.run(measure(options))


if __name__ == "__main__":
    main()
