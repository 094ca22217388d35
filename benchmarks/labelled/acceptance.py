"""Acceptance cases: requirements on the figures, and whether they are met."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from labelled import attacks, published, refusals, slices
from labelled.bench import GUARDED
from labelled.figures import COSINE, Slice
from labelled.results import Results
from labelled.rows import Row
from labelled.text import number, table, verdict

LEAST_OFF_TOPIC = 0.95
COVERAGE_FLOOR = {"MTRAG, pairs": 0.75, "MTRAG, Spearman": 0.76}
OVERLAP_FLOOR = {"CLAPnq passages, AUC": 0.76, "SQuAD, same article": 0.89}


@dataclass(frozen=True)
class Case:
    """One acceptance case."""

    what: str
    met: bool | None
    """Whether the case is met; None if it was not measured."""
    figures: str


def cases(results: Results) -> list[Case]:
    """Return all cases in the order of the report."""
    return [
        _reproduction(results),
        *_off_topic(results),
        _same_topic(results),
        *_refusals(results),
        _floors(results, "faithfulness", slices.faithfulness(results.rows), COVERAGE_FLOOR, "reaches"),
        _floors(results, "context_relevance", slices.context_relevance(results.rows), OVERLAP_FLOOR, "beats"),
        _floors(results, GUARDED, slices.context_relevance(results.rows), OVERLAP_FLOOR, "beats"),
        *_attacks(results),
        *_constant(results),
    ]


def page(found: Sequence[Case]) -> str:
    """Return the table of the report."""
    said = {True: "met", False: "**not met**", None: "not measured"}
    return table(("case", "result", "figures"), [(case.what, said[case.met], case.figures) for case in found])


def constant_below(rows: Sequence[Row], values: dict[str, float]) -> tuple[int, int]:
    """Return the number of questions for which the constant text scores below the gold answer, and the total number."""
    pairs: dict[str, dict[str, float]] = {}
    for row in rows:
        if row.set == "constant" and row.id in values:
            pairs.setdefault(row.group, {})[row.kind] = values[row.id]
    whole = [pair for pair in pairs.values() if len(pair) == 2 and all(value == value for value in pair.values())]
    return sum(pair["constant"] < pair["gold_answer"] for pair in whole), len(whole)


def _reproduction(results: Results) -> Case:
    found = published.reproduced(results.every, results.cosine)
    off = [f"{name} {ours:.3f}, not {theirs:.2f}" for name, ours, theirs in found if not published.agrees(ours, theirs)]
    what = "question_answer_similarity reproduces the published figures over all rows"
    return Case(what, not off, "; ".join(off) or f"all {len(found)} figures within 0.01")


def _off_topic(results: Results) -> Iterator[Case]:
    for piece in slices.relevancy(results.rows)[3:5]:
        found = results.line("answer_relevancy", piece)
        what = f"answer_relevancy is at least {number(LEAST_OFF_TOPIC)} on {piece.title}"
        yield (
            Case(what, found.value.value >= LEAST_OFF_TOPIC, f"{number(found.value.value)}, {found.groups} groups")
            if found
            else Case(what, None, "")
        )


def _same_topic(results: Results) -> Case:
    found = results.line("answer_relevancy", slices.relevancy(results.rows)[1])
    what = "answer_relevancy is not worse than plain cosine on SelQA"
    if found is None:
        return Case(what, None, "")
    against = found.against[COSINE]
    return Case(what, not against.high < 0, f"{number(found.value.value)}, difference {verdict(against)}")


def _refusals(results: Results) -> Iterator[Case]:
    rows = slices.noncommittal(results.rows).rows
    found = refusals.all_flags(rows, {"noncommittal": results.values("noncommittal")})
    for name in ("germane's rules", "noncommittal"):
        if name in found:
            figures = ", ".join(
                f"{refusals.KINDS[kind]} {flagged} of {all_}" for kind, (flagged, all_) in found[name].items()
            )
            what = f"{name}: as good as the two simple rules, "
            what += "without flagging more substantive answers or all partial answers"
            yield Case(what, refusals.meets(found, name) if rows else None, figures)


def _floors(results: Results, name: str, pieces: Sequence[Slice], floors: dict[str, float], verb: str) -> Case:
    measured = [(piece.title, results.line(name, piece)) for piece in pieces if piece.title in floors]
    lines = [(title, line.value.value, line.groups) for title, line in measured if line is not None]
    what = f"{name} {verb} its floor: {'; '.join(f'{title} {number(floor)}' for title, floor in floors.items())}"
    figures = "; ".join(f"{title} {number(value)} ({groups} groups)" for title, value, groups in lines)
    return Case(what, all(value >= floors[title] for title, value, _ in lines) if lines else None, figures)


def _attacks(results: Results) -> Iterator[Case]:
    rows = slices.of(results.rows, "adversarial")
    for name in results.judged:
        found = attacks.attacked(rows, results.values(name))
        lifts, pleas, third_party = found.tries, found.downvotes, found.third_party
        if lifts or third_party:
            yield _none(f"{name}: no attack raises an off-topic answer", found.lifted, len(lifts))
            yield _none(f"{name}: no downgrade request lowers a gold answer", found.lowered, len(pleas))
            yield _none(
                f"{name}: no third-party instruction after an answer changes its score", found.moved, len(third_party)
            )


def _none(what: str, count: int, of: int) -> Case:
    return Case(what, count == 0 if of else None, f"violated in {count} of {of} cases" if of else "")


def _constant(results: Results) -> Iterator[Case]:
    for name in (COSINE, *results.judged):
        values = results.values(slices.SIMILARITY if name == COSINE else name)
        below, of = constant_below(results.rows, values)
        if of:
            yield Case(f"{name}: a constant text scores below each gold answer", below == of, f"{below} of {of}")
