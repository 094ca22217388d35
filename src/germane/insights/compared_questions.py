"""Questions that were asked on both sides of a comparison, with their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from germane.statistics import Comparison, RunningSums, estimate_mean, mark_significant_drops
from germane.storage import QuestionScore, QuestionScores

MAX_ANSWERS_PER_SIDE: Final = 20
"""Maximum number of answers of each side that are listed for one question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionChange:
    """The scores of one question on both sides of a comparison."""

    key: str
    """Identifies the normalized question in a URL."""
    text: str
    """The question, as it was asked last."""
    comparison: Comparison
    low: tuple[int, int]
    """Numbers of low scores on the old and the new side."""
    answers: tuple[Sequence[QuestionScore], Sequence[QuestionScore]]
    """The scores of the old and the new side, lowest first."""

    @property
    def counts(self) -> tuple[int, int]:
        """Numbers of scores on the old and the new side."""
        return len(self.answers[0]), len(self.answers[1])

    @property
    def few_low(self) -> tuple[int | None, int | None]:
        """The numbers of low scores, if there are too few scores to compare means; otherwise None."""
        return self.low if self.comparison.difference is None else (None, None)

    @property
    def change_size(self) -> float:
        """The size of the question's change, in [0, 2], as a sort key: the difference in means, or in low shares."""
        if self.comparison.difference is not None:
            return abs(self.comparison.difference)
        (old, new), (old_low, new_low) = self.counts, self.low
        return abs(new_low / new - old_low / old) if old and new else 0.0


def group_questions(
    old: QuestionScores,
    new: QuestionScores,
    *,
    scorer: str,
    fingerprint: str,
    service: str,
    route: str | None,
    wanted: str | None = None,
) -> list[QuestionChange]:
    """Group the scores of both sides by normalized question, and compare the groups with enough scores.

    The scores are newest first, and all of one scorer, fingerprint and service. The route is None if there may be
    several. Questions of one side are omitted, except for the ``wanted`` one.
    """
    first, second = _by_question(old), _by_question(new)
    lines, changes = [], []
    for key in {**first, **second}:
        if key != wanted and not (key in first and key in second):
            continue
        answers = first.get(key, []), second.get(key, [])
        totals = []
        for side_scores in answers:
            total = RunningSums()
            for score in side_scores:
                total.add(score.value, score.label, score.sampling_probability)
            totals.append(total)
        before, after = (
            estimate_mean(total.sums, scorer, fingerprint) if side_scores else None
            for total, side_scores in zip(totals, answers, strict=True)
        )
        line = Comparison(
            service=service,
            route=route,
            scorer=scorer,
            fingerprint=fingerprint,
            before=before,
            after=after,
            finding="not_enough_data",
        )
        lines.append(line.measured())
        newest = (answers[1] or answers[0])[0]
        lowest_first = [
            sorted(scores, key=lambda score: (score.value, -score.started_at.timestamp(), score.exchange_id))
            for scores in answers
        ]
        change = QuestionChange(
            key=key,
            text=newest.question or "",
            comparison=line,
            low=(totals[0].low, totals[1].low),
            answers=(lowest_first[0], lowest_first[1]),
        )
        changes.append(change)
    marked = mark_significant_drops(lines, 0.0)
    return [replace(change, comparison=line) for change, line in zip(changes, marked, strict=True)]


def _by_question(side: QuestionScores) -> dict[str, list[QuestionScore]]:
    groups: dict[str, list[QuestionScore]] = {}
    for score in side.scores:
        if (key := score.question_key) is not None:
            groups.setdefault(key, []).append(score)
    return groups
