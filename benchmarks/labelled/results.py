"""Outcomes by scorer and run, and the scores from other libraries."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from labelled.bench import FREE, Bench, Outcomes
from labelled.examples import EXAMPLES
from labelled.figures import COSINE, LEAST_GROUPS, Line, Slice, Values, best_floor, floor_values, line, value_of
from labelled.plan import Step, constant_rows
from labelled.rows import Row
from labelled.text import number

SEVERAL_RUNS = "answer_relevancy"
"""Scorer whose judge uses a temperature above 0, so its runs differ."""

CARRIED = "ragas_faithfulness_rl_f"
"""Key of another library's score in a row's metadata."""
FREE_BY_SET = {
    "faithfulness": "context_coverage",
    "context_relevance": "context_similarity",
    "noncommittal": "noncommittal",
}
"""Scorers without a judge that apply to a set."""


@dataclass
class Results:
    """Input of the report."""

    rows: Sequence[Row]
    """Rows of the report half, rows derived from them, and examples."""
    every: Sequence[Row]
    """Rows of both halves."""
    found: dict[tuple[str, int], Outcomes] = field(default_factory=dict)
    peers: Mapping[str, Values] = field(default_factory=dict)

    @property
    def judged(self) -> list[str]:
        """Scorers that sent a judge request for any row."""
        return [name for (name, run), outcomes in self.found.items() if run == 0 and outcomes.asked_judge]

    def ran(self, name: str) -> bool:
        """Whether a scorer ran, with or without a judge."""
        return name in FREE or name in self.judged

    def values(self, name: str, run: int = 0) -> dict[str, float]:
        """Return a scorer's value for each row that it scored."""
        outcomes = self.found.get((name, run))
        asked = [row for row in self.rows if outcomes.covers(row)] if outcomes else []
        return {row.id: value for row, value in zip(asked, outcomes.values(asked), strict=True)} if outcomes else {}

    @property
    def cosine(self) -> dict[str, float]:
        """Plain cosine similarity of question and text for every row."""
        outcomes = self.found[FREE[0], 0]
        return dict(zip((row.id for row in self.every), outcomes.values(self.every), strict=True)) | self.values(
            FREE[0]
        )

    def methods(self) -> dict[str, Values]:
        """Return the values of judge-based scorers, followed by those of other libraries."""
        return {**{name: self.values(name) for name in self.judged}, **self.peers}

    def lines(self, piece: Slice) -> tuple[list[Line], str]:
        """Return a slice's lines and the name of its best floor."""
        best = best_floor(piece)
        floor = floor_values(piece.rows, best)
        others = {COSINE: self.cosine, best: floor}
        free = FREE_BY_SET.get(piece.rows[0].set)
        methods = {**({free: self.values(free)} if free and (free, 0) in self.found else {}), **self.methods()}
        found = [line(f"floor: {best}", piece, floor, {}), line(COSINE, piece, self.cosine, {best: floor})]
        found += [self._line(name, piece, values, others) for name, values in methods.items()]
        return [each for each in found if each is not None], best

    def line(self, name: str, piece: Slice) -> Line | None:
        """Return one scorer's line compared with plain cosine."""
        return line(name, piece, self.values(name), {COSINE: self.cosine})

    def plain(self, piece: Slice, values: Values) -> str:
        """Return a figure with its number of groups, or an empty string if there are too few groups."""
        rows = piece.covered(values)
        groups = len({row.group for row in rows})
        return f"{number(value_of(piece, values))} ({groups})" if groups >= LEAST_GROUPS else ""

    def _line(self, name: str, piece: Slice, values: Values, others: Mapping[str, Values]) -> Line | None:
        found = line(name, piece, values, others)
        spread = self.spread(name, piece) if name == SEVERAL_RUNS else ()
        return Line(**{**vars(found), "spread": spread}) if found else None

    def spread(self, name: str, piece: Slice) -> tuple[float, ...]:
        """Return the figure of each run on the rows that all runs scored."""
        runs = [self.values(name, run) for key, run in self.found if key == name]
        runs = [values for values in runs if piece.covered(values)]
        common = [row for row in piece.rows if all(row.id in values for values in runs)]
        same = Slice(piece.title, common, piece.measure, piece.without)
        return tuple(value_of(same, values) for values in runs) if len(runs) > 1 and same.rows else ()


def example_rows() -> list[Row]:
    """Return the rows of the examples."""
    return [row for example in EXAMPLES for row in example.rows]


async def collect(bench: Bench, every: Sequence[Row], rows: Sequence[Row], steps: Sequence[Step]) -> Results:
    """Collect all outcomes. Missing requests are sent only if the bench has a judge and there is time left."""
    results = Results([*rows, *constant_rows(rows), *example_rows()], every)
    free = await bench.score(FREE, [*every, *constant_rows(rows), *example_rows()])
    results.found |= {(name, 0): outcomes for name, outcomes in free.items()}
    for (name, run), sets in _wanted(steps).items():
        there = [row for row in results.rows if row.set in sets]
        found = await bench.score((name,), there, run=run)
        results.found |= {(name, run): outcomes for name, outcomes in found.items()}
    return results


def published_peers(rows: Sequence[Row]) -> dict[str, Values]:
    """Return the scores from another library that are stored in the rows."""
    found = {row.id: row.meta.get(CARRIED) for row in rows if CARRIED in row.meta}
    values = {name: float("nan") if value is None else float(value) for name, value in found.items()}
    return {"Ragas, published with the rows (another judge)": values} if values else {}


def read_peer(text: str) -> Values:
    """Parse the scores from another library: JSON lines with ``id`` and ``score``, null for a failed score."""
    found = [json.loads(line) for line in text.splitlines() if line.strip()]
    return {each["id"]: float("nan") if each["score"] is None else float(each["score"]) for each in found}


def _wanted(steps: Sequence[Step]) -> dict[tuple[str, int], set[str]]:
    wanted: dict[tuple[str, int], set[str]] = {}
    for step in steps:
        for name in step.scorers:
            wanted.setdefault((name, step.run), {"examples"}).add(step.set)
    return wanted
