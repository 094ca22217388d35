"""Direct similarity by the embedded MiniLM against labelled rows: python benchmarks/similarity.py FOLDER."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from germane.errors import ModelError
from germane.exchange import Exchange
from germane.scorers import Batcher, QuestionAnswerSimilarity, run
from germane.scorers.minilm import MiniLM

PUBLISHED = {"ALCE": 0.57, "MTRAG": 0.52, "SelQA": 0.82, "CLAPnq": 0.94}
"""Pairwise accuracy of the same weights on the same rows, as measured independently before."""
TOLERANCE = 0.01


def read(folder: Path) -> list[dict[str, Any]]:
    """Return the labelled rows: one JSON object a line, with question, answer, label, group and source."""
    return [json.loads(line) for line in (folder / "relevancy.jsonl").read_text(encoding="utf-8").splitlines()]


def exchange(row: dict[str, Any]) -> Exchange:
    """Return a row as an exchange."""
    return Exchange(
        id="0" * 32, trace_id="0" * 32, span_id="0" * 16, service="benchmark", route="rows",
        question=row["question"], answer=row["answer"], started_at=datetime.now(UTC),
    )  # fmt: skip


async def values(rows: list[dict[str, Any]]) -> list[float | None]:
    """Return the score of each row."""
    model = MiniLM()
    scorer = QuestionAnswerSimilarity(Batcher(model))
    scores = await asyncio.gather(*(run(scorer, exchange(row)) for row in rows))
    await model.aclose()
    return [score.value for score in scores]


def pairwise(rows: list[dict[str, Any]], found: list[float | None]) -> dict[str, list[float]]:
    """Return, per source, 1 for each pair in which the better answer scores higher, 0 for the others, .5 for ties."""
    groups: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for row, value in zip(rows, found, strict=True):
        if value is not None:
            groups[row["source"].partition("/")[0], row["group"]].append((row["label"], value))
    outcomes: dict[str, list[float]] = defaultdict(list)
    for (source, _), members in groups.items():
        pairs = [(a[1], b[1]) for a in members for b in members if a[0] > b[0]]
        outcomes[source] += [1.0 if better > worse else 0.5 if better == worse else 0.0 for better, worse in pairs]
    return outcomes


def main() -> int:
    """Print one line a source; return 1 when one is off by more than the tolerance."""
    folder = Path(sys.argv[1]) if len(sys.argv) == 2 else None
    if folder is None or not (folder / "relevancy.jsonl").is_file():
        print("skipped: give the folder that holds relevancy.jsonl")
        return 0
    rows = read(folder)
    try:
        found = asyncio.run(values(rows))
    except ModelError as error:
        print(f"skipped: {error}")
        return 0
    print(f"scored {sum(value is not None for value in found)} of {len(rows)} rows")
    off = 0
    for source, outcomes in pairwise(rows, found).items():
        accuracy = sum(outcomes) / len(outcomes)
        expected = PUBLISHED.get(source)
        wrong = expected is not None and abs(accuracy - expected) > TOLERANCE
        off += wrong
        print(f"{source:8} {accuracy:.3f} of {len(outcomes)} pairs; published {expected} {'OFF' if wrong else ''}")
    return int(bool(off))


if __name__ == "__main__":
    sys.exit(main())
