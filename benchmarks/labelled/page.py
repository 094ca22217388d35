"""The report: docs/quality.md."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import fill

from germane.registry import BUILTIN_SCORER_NAMES
from labelled import acceptance, attacks, published, refusals, slices
from labelled.bench import FREE, Outcomes
from labelled.examples import EXAMPLES
from labelled.figures import COSINE, Slice, difference_on, floor_values, value_of
from labelled.floors import FLOORS
from labelled.prose import PROSE
from labelled.results import SEVERAL_RUNS, Results
from labelled.rows import SETS
from labelled.text import lines, number, table, verdict

WIDTH = 120
LOG = "## Runs on this half"
LONG_NAMES = {
    "longer": "prefer the longer text",
    "shorter": "prefer the shorter text",
    "question overlap": "overlap with the question",
    "context coverage": "overlap with the contexts",
}


@dataclass(frozen=True)
class Facts:
    """Content of the report other than figures."""

    half: str
    judge: str | None
    """The judge's model name, as reported by its server."""
    judge_is: str
    """Human-readable description of the judge."""
    embedder: str
    log: Sequence[str]


def page(results: Results, facts: Facts) -> str:
    """Return the report in Markdown."""
    parts = [
        PROSE["head"].format(half=facts.half, rows=len([row for row in results.rows if row.set in SETS])),
        _measured_with(results, facts),
        "## Acceptance",
        acceptance.page(acceptance.cases(results)),
        PROSE["shortfalls"] if results.judged else "",
        "## Reproduction of published figures",
        PROSE["published"],
        published.page(published.reproduced(results.every, results.cosine)),
        *_section("Relevancy", "relevancy", results, slices.relevancy(results.rows)),
        *_answerability(results),
        *_refusals(results),
        *_section("Faithfulness", "faithfulness", results, slices.faithfulness(results.rows)),
        *_section("Context relevance", "context_relevance", results, slices.context_relevance(results.rows)),
        *_section("Other languages", "multilingual", results, slices.multilingual(results.rows)),
        *_attacks(results),
        *_peers(results),
        *_examples(results),
        *_costs(results),
        "## Not measured",
        _not_measured(results),
        "## Data sources",
        PROSE["credits"],
        LOG,
        "\n".join(f"- {line}" for line in facts.log) or "None yet.",
    ]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def logged(text: str) -> list[str]:
    """Return the runs listed in a report."""
    _, _, rest = text.partition(LOG)
    return re.findall(r"^- (.+)$", rest, re.MULTILINE)


def _not_measured(results: Results) -> str:
    absent = [
        f"`{name}`" for name in BUILTIN_SCORER_NAMES if name not in results.judged and (name, 0) not in results.found
    ]
    absent += [f"`{name}`" for name, run in results.found if run == 0 and not results.ran(name)]
    return PROSE["not_measured"] + (f"\n- Not run on these rows: {', '.join(absent)}." if absent else "")


def _measured_with(results: Results, facts: Facts) -> str:
    names = [*(name for name in FREE if (name, 0) in results.found), *results.judged]
    made = [(name, results.found[name, 0]) for name in names]
    head = ("scorer", "fingerprint", "runs", "rows", "rows without a request", "scored")
    runs = {
        name: max(1, sum(outcomes.asked_judge for (key, _), outcomes in results.found.items() if key == name))
        for name in names
    }
    return "\n\n".join(
        (
            "## Setup",
            fill(PROSE["with"].format(judge=facts.judge_is, embedder=facts.embedder), WIDTH),
            table(head, [_made(name, outcomes, runs[name], results) for name, outcomes in made]),
        )
    )


def _made(name: str, outcomes: Outcomes, runs: int, results: Results) -> Sequence[str]:
    asked = [outcomes.by_id[row.id] for row in results.rows if outcomes.covers(row)]
    scored = [outcome for outcome in asked if outcome.value is not None]
    prints = sorted({outcome.score.fingerprint for outcome in scored})
    free = sum(not outcome.usage.requests for outcome in asked)
    return name, ", ".join(f"`{each}`" for each in prints), str(runs), str(len(asked)), str(free), str(len(scored))


def _section(title: str, note: str, results: Results, pieces: Sequence[Slice]) -> Iterator[str]:
    if not any(piece.rows for piece in pieces):
        return
    yield f"## {title}"
    yield PROSE[note]
    for piece in pieces:
        if piece.rows:
            found, best = results.lines(piece)
            units = len({row.unit for row in piece.rows})
            yield f"### {piece.title}"
            others = (name for name in FLOORS if name not in piece.without and name != best)
            said = ", ".join(
                f"{LONG_NAMES[name]} ({number(value_of(piece, floor_values(piece.rows, name)))})" for name in others
            )
            yield (
                f"This comparison uses {len(piece.rows)} rows in {units} groups. "
                f"Simple baselines, not in the table: {said}."
            )
            yield lines(found, cosine=COSINE, floor=best)


def _answerability(results: Results) -> Iterator[str]:
    rows = slices.of(results.rows, "relevancy", origin="MTRAG")
    methods = {COSINE: results.cosine, **results.methods()}
    kinds = {"answerable": "ANSWERABLE", "not or partly answerable": ""}
    found = []
    for title, kind in kinds.items():
        groups = {row.group for row in rows if (row.meta.get("answerability") == "ANSWERABLE") == bool(kind)}
        piece = Slice(title, [row for row in rows if row.group in groups])
        cells = [results.plain(piece, values) for values in methods.values()]
        found.append((title, *cells))
    if rows:
        yield (
            "The next table splits MTRAG by whether the sources answer the question. "
            "If they do not, a refusal can be the better answer."
        )
        yield table(("", *methods), found)


def _refusals(results: Results) -> Iterator[str]:
    piece = slices.noncommittal(results.rows)
    if not piece.rows:
        return
    yield "## Noncommittal answers"
    yield PROSE["noncommittal"]
    yield refusals.page(refusals.all_flags(piece.rows, {"noncommittal": results.values("noncommittal")}))
    found, best = results.lines(piece)
    yield "The AUC for distinguishing substantive from noncommittal answers:"
    yield lines(found, cosine=COSINE, floor=best)


def _attacks(results: Results) -> Iterator[str]:
    rows = slices.of(results.rows, "adversarial")
    if not rows:
        return
    yield "## Attacks"
    yield PROSE["adversarial"]
    methods = {COSINE: results.cosine, **{name: results.values(name) for name in results.judged}}
    yield attacks.page({name: attacks.attacked(rows, values) for name, values in methods.items()})
    below = [(name, acceptance.constant_below(results.rows, values)) for name, values in methods.items()]
    yield f"The number of questions for which one constant text ({PROSE['constant']}) scores below the gold answer:"
    yield table(("method", "below gold"), [(name, f"{found} of {all_}") for name, (found, all_) in below if all_])


def _peers(results: Results) -> Iterator[str]:
    pieces = [*slices.relevancy(results.rows), *slices.faithfulness(results.rows)]
    found = [
        (piece.title, str(len({row.group for row in rows})), ours, number(mine), peer, number(theirs), verdict(gap))
        for peer, peers in results.peers.items()
        for piece in pieces
        for ours in results.judged
        for rows, mine, theirs, gap in difference_on(piece, results.values(ours), peers)
    ]
    if found:
        yield "## Comparison with other libraries"
        yield PROSE["peers"]
        yield table(("rows", "groups", "germane", "", "other library", "", "difference"), found)


def _examples(results: Results) -> Iterator[str]:
    yield "## Seven examples"
    yield PROSE["examples"]
    cells = []
    for example in EXAMPLES:
        for name in example.scorers:
            values = results.values(name)
            if all(row.id in values for row in example.rows):
                better, worse = (values[row.id] for row in example.rows)
                said = "yes" if better > worse else "**no**" if better <= worse else "a score failed"
                cells.append((example.title, name, number(better), number(worse), said))
    yield table(("example", "scorer", "better", "worse", "ranked correctly"), cells)


def _costs(results: Results) -> Iterator[str]:
    head = ("scorer", "rows", "requests per row", "input tokens", "output tokens", "seconds per row")
    found = [
        _cost(name, results.found[name, 0], results) for name in results.judged if (name, 0) in results.found
    ]  # fmt: skip
    if found:
        yield "## Cost"
        yield PROSE["costs"]
        yield table(head, found)


def _cost(name: str, outcomes: Outcomes, results: Results) -> Sequence[str]:
    asked = [outcomes.by_id[row.id].usage for row in results.rows if outcomes.covers(row)]
    usages = [usage for usage in asked if usage.requests]
    count = max(1, len(usages))
    return (
        name + (" (one run)" if name == SEVERAL_RUNS else ""),
        str(len(usages)),
        f"{sum(usage.requests for usage in usages) / count:.2f}",
        f"{sum(usage.input_tokens for usage in usages) / count:.0f}",
        f"{sum(usage.output_tokens for usage in usages) / count:.0f}",
        f"{sum(usage.seconds for usage in usages) / count:.1f}",
    )
