"""The labels that a new calibration changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

import click

from germane import sanitize, storage
from germane.cli.core.output import print_table

if TYPE_CHECKING:
    from germane.calibration import Calibration
    from germane.score import Score
    from germane.storage import TrackingStore

MAX_COMPARED: Final = 1_000
"""Maximum number of scores to compare per scorer, newest first."""
MAX_EXAMPLES: Final = 10
_HEADINGS: Final = ("scorer", "value", "label before", "label after", "question")


@dataclass(frozen=True, slots=True)
class LabelChange:
    """A score whose label changes with the new calibrations."""

    scorer: str
    value: float
    before: str | None
    after: str | None
    question: str | None


@dataclass(frozen=True, slots=True)
class LabelChanges:
    """The effect of new calibrations on the newest scores."""

    compared: int
    """Number of compared scores."""
    changes: Sequence[LabelChange]


def relabel_scores(
    store: TrackingStore, calibrations: Sequence[Calibration], since: datetime
) -> tuple[LabelChanges, list[tuple[str, Score]]]:
    """Apply ``calibrations`` to the newest scores with these embedders. The result is not stored.

    Exchanges whose text has been erased are omitted, because their scores no longer contain everything that the label
    depends on.

    Returns:
        The changes, and every compared score with its new label and details, and the id of its exchange.
    """
    from germane.scorers import CALIBRATED_SCORERS, apply_calibration

    new = {(entry.embedder, entry.scorer): entry for entry in (*store.labels.list_calibrations(), *calibrations)}
    embedders = {entry.embedder for entry in calibrations}
    scores, changes = [], []
    for scorer in CALIBRATED_SCORERS:
        page = store.answers.search(storage.AnswerFilter(scorer=scorer, since=since), sort="newest", limit=MAX_COMPARED)
        for answer in page.answers:
            score, question = answer.score, answer.exchange.question
            if score is None or score.value is None or score.embedder not in embedders or question is None:
                continue
            after = apply_calibration(score, new)
            scores.append((answer.exchange.id, after))
            if after.label != score.label:
                changes.append(LabelChange(scorer, score.value, score.label, after.label, question))
    return LabelChanges(len(scores), changes), scores


def print_label_changes(found: LabelChanges, *, is_saved: bool) -> None:
    """Print the number of labels that change, and up to ten examples spread evenly over the values."""
    if not found.compared:
        click.echo("There are no scores with this embedder yet, so labels cannot be compared.")
        return
    count = len(found.changes)
    if is_saved:
        click.echo(f"{count} of the {found.compared} newest labels changed. Older scores keep their labels.")
    else:
        click.echo(f"With these floors, {count} of the {found.compared} newest labels would change.")
    if not count:
        return
    ordered = sorted(found.changes, key=lambda change: change.value)
    examples = [ordered[index * count // min(count, MAX_EXAMPLES)] for index in range(min(count, MAX_EXAMPLES))]
    rows = [
        (
            change.scorer,
            f"{change.value:.2f}",
            sanitize.line(change.before or "-", 20),
            sanitize.line(change.after or "-", 20),
            sanitize.line(change.question or "", 60),
        )
        for change in examples
    ]
    print_table(_HEADINGS, rows)
