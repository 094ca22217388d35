"""``germane calibrate``: compute floors for cosine scores, and the agreement of metrics with human labels."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from germane import records, sanitize, storage
from germane.cli.commands.calibrate.agreement import (
    MAX_FALSE_REFUSAL_RATE,
    MIN_QUESTIONS,
    MetricAgreement,
    RefusalVotes,
    load_feedback_labels,
    load_file_labels,
    measure_agreement,
    measure_refusal_votes,
    score_labeled_file,
)
from germane.cli.core.command import Command, wants_json
from germane.cli.core.output import EXIT_NOT_ENOUGH_DATA, print_json, print_table
from germane.cli.core.params import COLUMN_NAMES, EXISTING_FILE, SINCE
from germane.cli.core.store import load_command_settings, open_store
from germane.errors import UsageError
from germane.records import select

if TYPE_CHECKING:
    from germane.agreement import BootstrapInterval
    from germane.calibration import Calibration
    from germane.exchange import Exchange
    from germane.score import Score
    from germane.settings import Settings
    from germane.storage import TrackingStore

CALIBRATION_HEADINGS: Final = ("scorer", "pairs", "n", "floor", "95% interval", "same topic")
AGREEMENT_HEADINGS: Final = ("metric", "n", "Spearman", "AUC", "pairs per question")
MAX_EXCHANGES: Final = 400
"""Number of exchanges to embed."""


@click.command("calibrate", cls=Command)
@click.option(
    "--file",
    type=EXISTING_FILE,
    help="File to score now, with columns question, answer, contexts and, optionally, label.",
)
@click.option("--columns", type=COLUMN_NAMES, help="Names of the file's columns, such as question=q,answer=a.")
@click.option("--scorer", "scorers", multiple=True, metavar="NAME", help="Scorer for --file. Repeatable.")
@click.option(
    "--labels", type=EXISTING_FILE, help="File with columns exchange_id and label, instead of stored feedback."
)
@click.option(
    "--since",
    type=SINCE,
    default="30d",
    show_default=True,
    help="Compute floors from answers given since this time.",
)
@click.option(
    "--save",
    is_flag=True,
    help="Save the floors, and update the newest labels. Running processes use the floors within ten minutes.",
)
@click.pass_context
def command(
    context: click.Context,
    file: Path | None,
    columns: dict[str, str] | None,
    scorers: tuple[str, ...],
    labels: Path | None,
    since: datetime,
    save: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """Compute floors for cosine scores, and compare scores with labels.

    The floor is the mean cosine similarity of texts from different exchanges. The same-topic floor is that of texts
    on the same topic. Computing them requires 50 exchanges with different questions; with fewer, the command exits with
    5. The output also shows how the labels of existing scores change. The comparison shows how well each metric agrees
    with human labels from feedback or a file.
    """
    from germane.scorers import MIN_CALIBRATION_EXCHANGES, distinct_exchanges

    if file is not None and labels is not None:
        raise click.UsageError("--labels refers to exchanges in the database and cannot be combined with --file")
    if file is None and (columns or scorers):
        raise click.UsageError("--columns and --scorer require --file")
    with ExitStack() as stack:
        store = stack.enter_context(open_store()) if file is None or save else None
        unknown = 0
        if file is not None:
            all_exchanges, answers = score_labeled_file(file, scorers, columns)
        else:
            assert store is not None  # noqa: S101 - the store is open because there is no file
            # Load more exchanges than will be embedded, because some have no text or repeat a question.
            all_exchanges = store.answers.list_exchanges(since=since, limit=4 * MAX_EXCHANGES)
            if labels is None:
                answers = load_feedback_labels(store)
            else:
                answers, unknown = load_file_labels(store, labels)
        exchanges = distinct_exchanges(all_exchanges)
        calibrations = asyncio.run(_measure_calibrations(load_command_settings(), exchanges[:MAX_EXCHANGES]))
        measured = [each.calibration for each in calibrations]
        changes = None
        if store is not None and measured:
            changes, relabeled = relabel_scores(store, measured, since)
            if save:
                store.labels.add_calibrations(measured)
                store.labels.update_labels(relabeled)
    is_saved = save and changes is not None
    agreements, votes = measure_agreement(answers), measure_refusal_votes(answers)
    if wants_json():
        content = {
            "exchanges": len(exchanges),
            "min_exchanges": MIN_CALIBRATION_EXCHANGES,
            "floors": [
                {**records.encode(each.calibration), **select(each, "pairs", "interval")} for each in calibrations
            ],
            "saved": is_saved,
            "label_changes": changes,
            "labeled": agreements[0].labeled if agreements else 0,
            "unknown_labels": unknown,
            "agreement": agreements,
            "refusal_votes": votes.as_dict(),
        }
        print_json(content)
    else:
        _print_calibrations(len(exchanges), calibrations, changes, is_saved=is_saved)
        click.echo()
        _print_agreements(agreements, unknown_labels=unknown)
        click.echo(f"\n{_describe_votes(votes)}")
    context.exit(0 if calibrations else EXIT_NOT_ENOUGH_DATA)


@dataclass(frozen=True, slots=True)
class MeasuredCalibration:
    """A calibration with its confidence interval."""

    calibration: Calibration
    pairs: str
    """Type of text pair."""
    interval: BootstrapInterval


async def _measure_calibrations(settings: Settings, exchanges: Sequence[Exchange]) -> list[MeasuredCalibration]:
    from germane.agreement import bootstrap_interval
    from germane.scorers import MIN_CALIBRATION_EXCHANGES, build_scorers, measure_cosine_pairs

    if len(exchanges) < MIN_CALIBRATION_EXCHANGES:
        return []
    scorer_set = build_scorers(settings, ["question_answer_similarity"])
    try:
        assert scorer_set.embedder is not None  # noqa: S101 - this scorer has an embedder
        measured = await measure_cosine_pairs(exchanges, scorer_set.embedder)
    finally:
        await scorer_set.aclose()
    now = datetime.now(UTC)
    try:
        return [
            MeasuredCalibration(pairs.to_calibration(now), pairs.pairs, bootstrap_interval(pairs.mean, range(pairs.n)))
            for pairs in measured
        ]
    except ValueError as error:
        raise UsageError(
            f"the embedder cannot be calibrated, because it considers all texts equally similar: {error}"
        ) from None


def _print_calibrations(
    n: int, calibrations: Sequence[MeasuredCalibration], changes: LabelChanges | None, *, is_saved: bool
) -> None:
    from germane.scorers import MIN_CALIBRATION_EXCHANGES

    if not calibrations:
        click.echo(
            f"Floors: not enough data (n={n} exchanges with different questions, need {MIN_CALIBRATION_EXCHANGES})"
        )
        return
    embedder = sanitize.line(calibrations[0].calibration.embedder, 60)
    click.echo(f"Floors for {embedder}: cosine similarity of texts from different exchanges")
    rows = [
        (
            measured.calibration.scorer,
            measured.pairs,
            str(measured.calibration.n),
            f"{measured.calibration.floor:z.3f}",
            f"{measured.interval.low:z.3f} to {measured.interval.high:z.3f}",
            f"{measured.calibration.topic_floor:z.3f}",
        )
        for measured in calibrations
    ]
    print_table(CALIBRATION_HEADINGS, rows)
    click.echo(
        "Floors saved. Running processes use them for new labels within ten minutes."
        if is_saved
        else "Not saved. To save the floors, pass --save."
    )
    if changes is not None:
        print_label_changes(changes, is_saved=is_saved)


def _print_agreements(agreements: Sequence[MetricAgreement], *, unknown_labels: int) -> None:
    if unknown_labels:
        refer = "label refers to an exchange that is" if unknown_labels == 1 else "labels refer to exchanges that are"
        click.echo(f"{unknown_labels} {refer} not in the database.")
    if not agreements:
        click.echo("Agreement with human labels: no labels yet. Record labels with germane.feedback(), or pass a file.")
        return
    click.echo(f"Agreement with human labels for {agreements[0].labeled} answers, with 95% intervals over questions")
    rows: list[tuple[str, ...]] = []
    for agreement in agreements:
        name = sanitize.line(agreement.metric, 40)
        if sum(other.metric == agreement.metric for other in agreements) > 1:
            name += f" {sanitize.line(agreement.fingerprint, 20)}"
        if agreement.questions < MIN_QUESTIONS:
            reason = f"not enough data ({agreement.questions} questions, need {MIN_QUESTIONS})"
            rows.append((name, str(agreement.n), reason, "-", "-"))
        else:
            intervals = (agreement.spearman, agreement.auc, agreement.pairs)
            cells = (
                "-" if interval is None else f"{interval.value:z.2f} [{interval.low:z.2f}, {interval.high:z.2f}]"
                for interval in intervals
            )
            rows.append((name, str(agreement.n), *cells))
    print_table(AGREEMENT_HEADINGS, rows)


def _describe_votes(votes: RefusalVotes) -> str:
    """Describe whether the judge's refusal votes are reliable, and the recommended setting."""
    if votes.false_rate is None:
        return (
            "Refusals detected by the judge: no votes on good answers yet. Try a labeled file: "
            "GERMANE_JUDGE_DETECTS_REFUSALS=true germane calibrate --file FILE"
        )
    answers = f"{votes.n} good answers ({votes.questions} questions)"
    rate = f"the judge classifies {votes.false_rate:.1%} of {answers} as refusals"
    limit = f"at most {votes.max_false_rate:.1%} with 95% confidence (limit {MAX_FALSE_REFUSAL_RATE:.0%})"
    if votes.are_reliable:
        return f"Refusals detected by the judge are reliable: {rate}, {limit}. Set judge_detects_refusals = true."
    if votes.are_reliable is False:
        return (
            f"Refusals detected by the judge are not reliable: {rate} (limit {MAX_FALSE_REFUSAL_RATE:.0%}). "
            "Set judge_detects_refusals = false."
        )
    return (
        f"Refusals detected by the judge: not enough data. So far, {rate}, {limit}. Without further false votes, "
        f"{votes.needed_questions} questions are enough."
    )


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
            f"{change.value:z.2f}",
            sanitize.line(change.before or "-", 20),
            sanitize.line(change.after or "-", 20),
            sanitize.line(change.question or "", 60),
        )
        for change in examples
    ]
    print_table(_HEADINGS, rows)
