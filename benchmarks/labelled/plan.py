"""The order of judge requests: the cheapest and most informative come first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from labelled import slices
from labelled.bench import GUARDED
from labelled.rows import Row, sampled

SAME = "A good question. There are many sides to this topic, and it depends on the case which of them counts most."
"""The same text for all questions, which answers none of them."""
DIRECT = ("direct_relevancy", "guarded_relevancy")
REVERSE = ("answer_relevancy",)
CONTEXTS = ("context_relevance", GUARDED)
"""The rating, and the rating times the cosine. Both use the same requests."""
OTHERS = ("question_coverage", "intent_match", "combined_relevancy")


@dataclass(frozen=True)
class Step:
    """One step, which runs some scorers on whole groups of one set."""

    scorers: tuple[str, ...]
    set: str
    origin: str | None = None
    groups: int | None = None
    """Maximum number of groups; None for all."""
    kinds: tuple[str, ...] = ()
    run: int = 0

    @property
    def title(self) -> str:
        """The step's description."""
        where = f"{self.set} {self.origin or ''}".strip()
        size = "all groups" if self.groups is None else f"{self.groups} groups"
        return f"{', '.join(self.scorers)} on {where}, {size}, run {self.run + 1}"

    def rows(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows of the step."""
        return sampled(slices.of(rows, self.set, origin=self.origin, kinds=self.kinds), self.groups)


def plan(runs: int = 3) -> list[Step]:
    """Return the steps: ``runs`` runs of answer_relevancy, and one run of everything that uses temperature 0."""
    selqa, clapnq = Step(REVERSE, "relevancy", "SelQA"), Step(REVERSE, "relevancy", "CLAPnq", 8)
    first = [
        Step(DIRECT, "relevancy", "SelQA"),
        Step(DIRECT, "relevancy", "CLAPnq", 12),
        Step(DIRECT, "adversarial", "CLAPnq", 6),
        selqa,
        Step(CONTEXTS, "context_relevance", "SQuAD1.1", 14),
        Step(CONTEXTS, "context_relevance", "CLAPnq", 24, kinds=("answers", "does_not")),
        clapnq,
        Step(DIRECT, "constant", groups=16),
        Step(DIRECT, "adversarial", "BIPIA + CLAPnq", 6),
        Step(("faithfulness",), "faithfulness", groups=6),
        Step(DIRECT, "relevancy", "ALCE", 12),
        Step(REVERSE, "adversarial", "CLAPnq", 3),
        Step(DIRECT, "relevancy", "MTRAG", 8),
        Step(OTHERS, "relevancy", "SelQA", 6),
        Step(("answer_quality",), "examples"),
        Step(REVERSE, "relevancy", "ALCE", 8),
        Step(REVERSE, "relevancy", "MTRAG", 6),
        Step(REVERSE, "constant", groups=8),
        Step(DIRECT, "multilingual", groups=12),
    ]
    again = [replace(step, run=run) for run in range(1, runs) for step in (selqa, clapnq)]
    rest = [
        Step(DIRECT, "relevancy", "CLAPnq"),
        Step(DIRECT, "adversarial"),
        Step(DIRECT, "relevancy", "ALCE"),
        Step(DIRECT, "relevancy", "MTRAG"),
        Step(CONTEXTS, "context_relevance"),
        Step(("faithfulness",), "faithfulness"),
    ]
    return [*first, *again, *rest]


def constant_rows(rows: Sequence[Row]) -> list[Row]:
    """Return each CLAPnq gold answer, and the constant text for the same question."""
    gold = slices.of(rows, "relevancy", origin="CLAPnq", kinds=("gold_answer",))
    return [
        made
        for row in gold
        for made in (_constant(row), _constant(replace(row, answer=SAME, label=0.0, kind="constant")))
    ]


def _constant(row: Row) -> Row:
    return replace(row, id=f"constant-{row.kind}-{row.id}", set="constant")
