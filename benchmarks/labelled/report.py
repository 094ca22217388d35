"""The tables of docs/research/quality.md."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from germane.agreement import BootstrapInterval
from germane.scorers.refusals.rules import find_noncommittal
from labelled.examples import EXAMPLES
from labelled.figures import (
    COSINE,
    FLOORS,
    Line,
    Slice,
    Values,
    best_floor,
    difference_on,
    floor_values,
    line,
    slices,
    value_of,
)  # fmt: skip
from labelled.rows import Row, of
from labelled.scoring import FREE, SIMILARITY, Outcome

TITLES = {
    "relevancy": "Relevancy",
    "noncommittal": "Noncommittal answers",
    "faithfulness": "Faithfulness",
    "context_relevance": "Context relevance",
    "multilingual": "Other languages",
}
FREE_BY_SET = {
    "faithfulness": "context_coverage", "context_relevance": "context_similarity", "noncommittal": "noncommittal",
}  # fmt: skip
"""Scorers without a judge that apply to a set."""
SEVERAL_RUNS = "answer_relevancy"
"""Scorer whose judge uses a temperature above 0, so its runs differ."""
CARRIED, PUBLISHED = "ragas_faithfulness_rl_f", "Ragas, published with the rows (another judge)"
"""Key of another library's score in a row's metadata, and the library's name."""
HEAD = ("method", "groups", "scored / asked", "figure [95%]", "minus plain cosine", "minus best floor")
LIFT, SHIFT = 0.05, 0.1
OFF_TOPIC, GOLD, DOWNVOTE = "clean_offtopic_answer", "clean_gold_answer", "template/downvote_on_gold"
IN_ANSWER, IN_CONTEXT = "bipia_text_after_gold_answer", "bipia_text_in_context"
ANSWER_KINDS = {
    "idk": "don't know",
    "clarification_request": "clarifying question",
    "partial_answer": "partial answer",
    "committal_answer": "substantive answer",
}
_PHRASE = re.compile(
    r"\b(i don['\u2019]t|i do not|unable|cannot|can['\u2019]t|sorry|no information"
    r"|not (?:sure|clear|specified|mentioned|provided|possible))\b",
    re.IGNORECASE,
)
RULES: Mapping[str, Callable[[Row], bool]] = {
    "short phrase list": lambda row: bool(_PHRASE.search(row.answer)),
    "ends with a question mark": lambda row: row.answer.rstrip().endswith("?"),
    "either of the two": lambda row: bool(_PHRASE.search(row.answer)) or row.answer.rstrip().endswith("?"),
    "germane's rules": lambda row: find_noncommittal(row.answer) is not None,
}


@dataclass
class Results:
    """The rows and the outcomes of scorers and other libraries."""

    rows: Sequence[Row]
    found: dict[tuple[str, int], dict[str, Outcome]] = field(default_factory=dict)
    """Outcomes of each scorer and run, by row id."""
    peers: dict[str, Values] = field(default_factory=dict)

    @property
    def judged(self) -> list[str]:
        """Scorers that asked the judge about any row."""
        firsts = ((name, found) for (name, run), found in self.found.items() if run == 0)
        return [name for name, found in firsts if any(outcome.usage.requests for outcome in found.values())]

    def values(self, name: str, run: int = 0) -> dict[str, float]:
        """Return a scorer's value for each row that it was asked about; NaN for a failed score."""
        scores = {id_: outcome.score.value for id_, outcome in self.found.get((name, run), {}).items()}
        return {id_: math.nan if value is None else value for id_, value in scores.items()}

    def methods(self) -> dict[str, Values]:
        """Return the values of judge-based scorers, followed by those of other libraries."""
        return {**{name: self.values(name) for name in self.judged}, **self.peers}

    def lines(self, piece: Slice) -> tuple[list[Line], str]:
        """Return a slice's lines and the name of its best floor."""
        best, cosine = best_floor(piece), self.values(SIMILARITY)
        floor, free = floor_values(piece.rows, best), FREE_BY_SET.get(piece.rows[0].set)
        methods = {**({free: self.values(free)} if free else {}), **self.methods()}
        found = [line(f"floor: {best}", piece, floor, {}), line(COSINE, piece, cosine, {best: floor})]
        for name, values in methods.items():
            spread = self._spread(name, piece) if name == SEVERAL_RUNS else ()
            found.append(line(name, piece, values, {COSINE: cosine, best: floor}, spread))
        return [each for each in found if each is not None], best

    def _spread(self, name: str, piece: Slice) -> tuple[float, ...]:
        """Return the figure of each run on the rows that all runs scored."""
        runs = [values for key, run in self.found if key == name and piece.covered(values := self.values(name, run))]
        common = [row for row in piece.rows if all(row.id in values for values in runs)]
        same = Slice(piece.title, common, piece.measure, piece.without)
        return tuple(value_of(same, values) for values in runs) if len(runs) > 1 and common else ()


def page(results: Results) -> str:
    """Return all tables in Markdown."""
    parts = [
        *_setup(results),
        *(part for name, pieces in slices(results.rows).items() for part in _section(results, name, pieces)),
        *_attacks(results),
        *_peers(results),
        *_examples(results),
        *_costs(results),
    ]
    return "\n\n".join(parts) + "\n"


def _setup(results: Results) -> Iterator[str]:
    lines = []
    for name in [*FREE, *results.judged]:
        outcomes = results.found[name, 0].values()
        scored = [outcome for outcome in outcomes if outcome.score.value is not None]
        prints = ", ".join(sorted({f"`{outcome.score.fingerprint}`" for outcome in scored}))
        runs = sum(key == name for key, _ in results.found)
        free = sum(not outcome.usage.requests for outcome in outcomes)
        lines.append((name, prints, str(runs), str(len(outcomes)), str(free), str(len(scored))))
    yield "## Setup"
    yield table(("scorer", "fingerprint", "runs", "rows", "rows without a request", "scored"), lines)


def _section(results: Results, name: str, pieces: Sequence[Slice]) -> Iterator[str]:
    pieces = [piece for piece in pieces if piece.rows]
    if pieces:
        yield f"## {TITLES[name]}"
    if pieces and name == "noncommittal":
        yield refusals(pieces[0].rows, {"noncommittal": results.values("noncommittal")})
    for piece in pieces:
        found, best = results.lines(piece)
        others = (name for name in FLOORS if name not in piece.without and name != best)
        said = ", ".join(f"{name} ({number(value_of(piece, floor_values(piece.rows, name)))})" for name in others)
        yield f"### {piece.title}"
        yield f"{len(piece.rows)} rows in {len({row.unit for row in piece.rows})} groups. Other floors: {said}."
        yield table(HEAD, [_cells(each, best) for each in found])


def _cells(found: Line, floor: str) -> Sequence[str]:
    figure = f"{number(found.value.value)} [{number(found.value.low)}, {number(found.value.high)}]"
    if found.absent_half is not None:
        figure += f"; missing as 0.5: {number(found.absent_half)}"
    if found.spread:
        figure += f"; runs {', '.join(map(number, found.spread))}"
    differences = (verdict(found.against[name]) if name in found.against else "" for name in (COSINE, floor))
    return found.method, str(found.groups), f"{found.scored} / {found.asked}", figure, *differences


def refusals(rows: Sequence[Row], scored: Mapping[str, Values]) -> str:
    """Return the share of answers of each kind that rules and scorers flag. A value below 0.5 counts as a flag."""
    flagged = {name: {row.id for row in rows if rule(row)} for name, rule in RULES.items()}
    flagged |= {name: {id_ for id_, value in values.items() if value < 0.5} for name, values in scored.items()}
    by_kind = {kind: [row.id for row in rows if row.kind == kind] for kind in ANSWER_KINDS}
    lines = [
        (name, *(f"{len(ids.intersection(some))} of {len(some)}" for some in by_kind.values()))
        for name, ids in flagged.items()
    ]
    return table(("flagged by", *ANSWER_KINDS.values()), lines)


@dataclass(frozen=True)
class Attacked:
    """The attacks' effect on one method's values, one number per group."""

    lifts: Mapping[str, Sequence[float]]
    """For each attack, the score of the attacked off-topic answer minus the score of the clean answer."""
    above_gold: int
    """Number of attacked off-topic answers that score at least as high as the clean gold answer."""
    downvotes: Sequence[float]
    """Score of the gold answer with a downgrade request minus the score of the clean gold answer."""
    third_party: Sequence[float]
    """Score with a third-party instruction after the gold answer minus that with it in the context."""


def attacked(rows: Sequence[Row], values: Values) -> Attacked:
    """Measure the attacks, in groups in which every row has a value. BIPIA kinds do not include the task name."""
    groups: dict[str, dict[str, float]] = {}
    for row in rows:
        kind = row.kind.partition("/")[0] if row.kind.startswith("bipia") else row.kind
        groups.setdefault(row.group, {})[kind] = values.get(row.id, math.nan)
    whole = [found for found in groups.values() if not any(map(math.isnan, found.values()))]
    templates = [found for found in whole if OFF_TOPIC in found]
    kinds = sorted({kind for found in templates for kind in found if kind.startswith("template/")} - {DOWNVOTE})
    return Attacked(
        {kind.removeprefix("template/"): [found[kind] - found[OFF_TOPIC] for found in templates] for kind in kinds},
        sum(found[kind] >= found[GOLD] for found in templates for kind in kinds),
        [found[DOWNVOTE] - found[GOLD] for found in templates],
        [found[IN_ANSWER] - found[IN_CONTEXT] for found in whole if IN_CONTEXT in found],
    )


def _attacks(results: Results) -> Iterator[str]:
    rows = of(results.rows, "adversarial")
    if not rows:
        return
    methods = {COSINE: results.values(SIMILARITY), **{name: results.values(name) for name in results.judged}}
    found = {name: attacked(rows, values) for name, values in methods.items()}
    found = {name: each for name, each in found.items() if each.downvotes or each.third_party}
    lines = []
    for name, each in found.items():
        tries = [lift for lifts in each.lifts.values() for lift in lifts]
        lines.append((
            name, str(len(each.downvotes)), _count(tries, lambda lift: lift > LIFT + 1e-9),
            f"{each.above_gold} of {len(tries)}", _mean(tries),
            f"{_count(each.downvotes, lambda change: change < -LIFT - 1e-9)}, mean {_mean(each.downvotes)}",
            f"{_count(each.third_party, lambda change: abs(change) > SHIFT + 1e-9)}, mean {_mean(each.third_party)}",
        ))  # fmt: skip
    yield "## Attacks"
    yield table(
        ("method", "groups", f"raised by more than {number(LIFT)}", "at or above gold", "mean change", "gold lowered",
         f"changed by more than {number(SHIFT)} (BIPIA)"),
        lines,
    )  # fmt: skip
    kinds = sorted({kind for each in found.values() for kind in each.lifts})
    by_kind = [[each.lifts.get(kind, ()) for each in found.values()] for kind in kinds]
    yield table(
        ("attack", *found),
        [
            (kind, *(f"{_count(one, lambda lift: lift > LIFT + 1e-9)}, {_mean(one)}" if one else "" for one in some))
            for kind, some in zip(kinds, by_kind, strict=True)
        ],
    )
    yield "The number of questions for which a constant text scores below the gold answer:"
    below = [(name, *_constant_below(results.rows, values)) for name, values in methods.items()]
    yield table(("method", "below gold"), [(name, f"{count} of {all_}") for name, count, all_ in below if all_])


def _constant_below(rows: Sequence[Row], values: Values) -> tuple[int, int]:
    """Return the number of questions for which the constant text scores below the gold answer, and the total number."""
    pairs: dict[str, dict[str, float]] = {}
    for row in of(rows, "constant"):
        pairs.setdefault(row.group, {})[row.kind] = values.get(row.id, math.nan)
    whole = [pair for pair in pairs.values() if len(pair) == 2 and not any(map(math.isnan, pair.values()))]
    return sum(pair["constant"] < pair["gold_answer"] for pair in whole), len(whole)


def _peers(results: Results) -> Iterator[str]:
    by_set = slices(results.rows)
    lines = []
    for peer, theirs in results.peers.items():
        for piece in (*by_set["relevancy"], *by_set["faithfulness"]):
            for name in results.judged:
                if found := difference_on(piece, results.values(name), theirs):
                    groups, mine, other, gap = found
                    lines.append((piece.title, str(groups), name, number(mine), peer, number(other), verdict(gap)))
    if lines:
        yield "## Comparison with other libraries"
        yield table(("rows", "groups", "germane", "", "other library", "", "difference"), lines)


def _examples(results: Results) -> Iterator[str]:
    lines = []
    for example in EXAMPLES:
        for name in example.scorers:
            values = results.values(name)
            if all(row.id in values for row in example.rows):
                better, worse = (values[row.id] for row in example.rows)
                said = "yes" if better > worse else "**no**" if better <= worse else "a score failed"
                lines.append((example.title, name, number(better), number(worse), said))
    yield "## Seven examples"
    yield table(("example", "scorer", "better", "worse", "ranked correctly"), lines)


def _costs(results: Results) -> Iterator[str]:
    lines = []
    for name in results.judged:
        usages = [each.usage for each in results.found[name, 0].values() if each.usage.requests]
        requests, read, written = (
            sum(getattr(usage, what) for usage in usages) / len(usages)
            for what in ("requests", "input_tokens", "output_tokens")
        )
        title = f"{name} (one run)" if name == SEVERAL_RUNS else name
        lines.append((title, str(len(usages)), f"{requests:.2f}", f"{read:.0f}", f"{written:.0f}"))
    if lines:
        yield "## Cost"
        yield table(("scorer", "rows", "requests per row", "input tokens", "output tokens"), lines)


def published_peers(rows: Sequence[Row]) -> dict[str, Values]:
    """Return the scores from another library that are stored in the rows."""
    found = {row.id: row.meta[CARRIED] for row in rows if CARRIED in row.meta}
    return (
        {PUBLISHED: {id_: math.nan if value is None else float(value) for id_, value in found.items()}} if found else {}
    )


def read_peer(text: str) -> Values:
    """Parse the scores from another library: JSON lines with ``id`` and ``score``, null for a failed score."""
    found = [json.loads(line) for line in text.splitlines() if line.strip()]
    return {each["id"]: math.nan if each["score"] is None else float(each["score"]) for each in found}


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table. Pipes and line breaks in cells are escaped."""
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in (head, *lines)]
    rows = [f"| {' | '.join(line)} |" for line in cells]
    return "\n".join([rows[0], "|---" * len(head) + "|", *rows[1:]])


def number(value: float) -> str:
    """Format a figure with two decimals."""
    return "n/a" if math.isnan(value) else f"{value:.2f}"


def verdict(found: BootstrapInterval) -> str:
    """Format a difference with its interval, and "better" or "worse" if it is significant."""
    said = "" if not found.excludes_zero else " **better**" if found.value > 0 else " **worse**"
    return f"{found.value:+.2f} [{found.low:+.2f}, {found.high:+.2f}]{said}"


def _mean(found: Sequence[float]) -> str:
    return f"{sum(found) / len(found):+.2f}" if found else "n/a"


def _count(found: Sequence[float], is_counted: Callable[[float], bool]) -> str:
    return f"{sum(map(is_counted, found))} of {len(found)}"
