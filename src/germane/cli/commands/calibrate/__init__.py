"""``germane calibrate``: where the embedder's scale begins, and how well the metrics agree with people."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from germane.cli.commands.calibrate.agreement import ENOUGH, FALSE_VOTES, Agreement, Votes, agreements, votes
from germane.cli.commands.calibrate.labels import by_feedback, by_file, scored_now
from germane.cli.commands.report import NOT_ENOUGH_DATA
from germane.cli.commands.score import Columns
from germane.cli.core.output import Since, as_json, database, harmless, print_json, print_table
from germane.cli.core.store import opened, settings_for
from germane.errors import UsageError

if TYPE_CHECKING:
    from germane.agreement import Interval
    from germane.calibration import Calibration
    from germane.exchange import Exchange
    from germane.scorers.calibration.baseline_similarity import Unrelated
    from germane.settings import Settings
    from germane.storage import Store

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@dataclass(frozen=True, slots=True)
class Floor:
    """A floor with its interval."""

    calibration: Calibration
    pairs: str
    interval: Interval


@click.command("calibrate")
@click.option("--file", type=_FILE, help="Rows of question, answer and contexts, scored now; label where known.")
@click.option("--columns", type=Columns(), help="Your names of the file's columns, such as question=q,answer=a.")
@click.option("--scorer", "scorers", multiple=True, metavar="NAME", help="Of a file: which; again for more than one.")
@click.option("--labels", type=_FILE, help="Rows of exchange_id and label, instead of the feedback in the database.")
@click.option("--since", type=Since(), default="30d", show_default=True, help="Floors from answers given since then.")
@click.option("--limit", default=400, show_default=True, type=click.IntRange(2, 2000), help="Exchanges to embed.")
@click.option("--save", is_flag=True, help="Keep the floors in the database: labels go by them from the next start on.")
@database
@as_json
@click.pass_context
def command(
    context: click.Context,
    file: Path | None,
    columns: dict[str, str] | None,
    scorers: tuple[str, ...],
    labels: Path | None,
    since: datetime,
    limit: int,
    save: bool,  # noqa: FBT001 - click passes it by name
    database: str | None,
    as_json: bool,  # noqa: FBT001
) -> None:
    """Compare scores with people's labels; find the cosines' floor.

    The floor is the mean cosine of texts of different exchanges, of which it needs 50. Exits with 5 where there are
    fewer.
    """
    if file is not None and labels is not None:
        raise click.UsageError("--labels names exchanges of the database: give it without --file")
    if file is None and (columns or scorers):
        raise click.UsageError("--columns and --scorer are for the rows of a file: give them with --file")
    with ExitStack() as stack:
        store = stack.enter_context(opened(database)) if file is None or save else None
        exchanges, rows = _of_store(store, labels, since, limit) if file is None else _of_file(file, scorers, columns)
        floors = _floors(settings_for(database), exchanges[:limit])
        if save and store is not None and floors:
            store.add_calibrations([floor.calibration for floor in floors])
    found, voted = agreements(rows), votes(rows)
    if as_json:
        print_json(_as_dict(len(exchanges), floors, found, voted, saved=save and bool(floors)))
    else:
        _print(len(exchanges), floors, found, voted, saved=save)
    context.exit(0 if floors else NOT_ENOUGH_DATA)


def _of_file(file: Path, scorers: tuple[str, ...], columns: dict[str, str] | None) -> tuple[list[Exchange], list[Any]]:
    from germane.scorers.calibration.baseline_similarity import distinct

    exchanges, rows = scored_now(file, scorers, columns)
    return distinct(exchanges), rows


def _of_store(
    store: Store | None, labels: Path | None, since: datetime, limit: int
) -> tuple[list[Exchange], list[Any]]:
    """Return the exchanges that have texts to embed, newest first, and the labelled rows."""
    from germane.scorers.calibration.baseline_similarity import distinct

    assert store is not None  # noqa: S101 - without a file it was opened
    # More than are embedded: some have no text, or the question of another.
    exchanges = distinct(store.exchanges(since=since, limit=4 * limit))
    return exchanges, by_feedback(store) if labels is None else by_file(store, labels)


def _floors(settings: Settings, exchanges: Sequence[Exchange]) -> list[Floor]:
    from germane.agreement import interval

    found = asyncio.run(_unrelated(settings, exchanges))
    now = datetime.now(UTC)
    try:
        return [Floor(one.calibration(now), one.pairs, interval(one.mean, range(one.n))) for one in found]
    except ValueError as error:
        raise UsageError(f"the embedder finds all texts alike, and cannot be calibrated: {error}") from None


async def _unrelated(settings: Settings, exchanges: Sequence[Exchange]) -> list[Unrelated]:
    from germane.scorers import build
    from germane.scorers.calibration.baseline_similarity import LEAST, unrelated

    if len(exchanges) < LEAST:
        return []
    workbench = build(settings, ["question_answer_similarity"])
    try:
        assert workbench.embedder is not None  # noqa: S101 - that scorer has one
        return await unrelated(exchanges, workbench.embedder)
    finally:
        await workbench.aclose()


def _print(n: int, floors: list[Floor], found: list[Agreement], voted: Votes, *, saved: bool) -> None:
    _print_floors(n, floors, saved=saved)
    click.echo()
    _print_agreements(found)
    click.echo()
    click.echo(_told(voted))


def _print_floors(n: int, floors: list[Floor], *, saved: bool) -> None:
    from germane.scorers.calibration.baseline_similarity import LEAST

    if not floors:
        click.echo(f"Floors: not enough data (n={n} exchanges of different questions, need {LEAST})")
        return
    click.echo(f"Floors of {harmless(floors[0].calibration.embedder, 60)}: cosines of different exchanges")
    headings = ("scorer", "of", "n", "floor", "95 % interval", "95 % are under")
    print_table(headings, [_floor_cells(floor) for floor in floors])
    click.echo("Saved: labels go by them from the next start on." if saved else "Not saved; --save keeps them.")


def _floor_cells(floor: Floor) -> tuple[str, ...]:
    one = floor.calibration
    between = f"{floor.interval.low:.3f} to {floor.interval.high:.3f}"
    return one.scorer, floor.pairs, str(one.n), f"{one.floor:.3f}", between, f"{one.high:.3f}"


def _print_agreements(found: list[Agreement]) -> None:
    if not found:
        click.echo("Agreement with people: no labels. germane.feedback() keeps them; or give a file.")
        return
    click.echo(f"Agreement with people's labels of {found[0].of} answers; 95 % intervals over questions")
    rows = [_agreement_cells(one, found) for one in found]
    print_table(("metric", "n", "Spearman", "AUC", "pairs of one question"), rows)


def _agreement_cells(one: Agreement, found: list[Agreement]) -> tuple[str, ...]:
    ways = [other for other in found if other.metric == one.metric]
    name = harmless(one.metric, 40) + (f" {harmless(one.fingerprint, 20)}" if len(ways) > 1 else "")
    if one.questions < ENOUGH:
        return name, str(one.n), f"not enough data ({one.questions} questions, need {ENOUGH})", "-", "-"
    return name, str(one.n), _shown(one.spearman), _shown(one.auc), _shown(one.pairs)


def _shown(found: Interval | None) -> str:
    return "-" if found is None else f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def _told(voted: Votes) -> str:
    """Say whether the judge's votes may count, how sure that is, and what to do."""
    about = "The judge's noncommittal votes"
    if voted.false is None:
        return f"{about}: none on an answer that people hold for good. {_TRY}"
    share = f"{voted.false:.1%} of {voted.n} good answers ({voted.questions} questions) are called noncommittal"
    if voted.may_count:
        return f"{about} may count: {share}, {_limit(voted)}. Set noncommittal_votes = true, or leave it so."
    if voted.may_count is False:
        return f"{about} may not count: {share}, and {FALSE_VOTES:.0%} may be. Set noncommittal_votes = false."
    return f"{about}: not enough data. {share}, {_limit(voted)}; with no more false, {voted.needed} questions would do."


_TRY = "Try them on a file with labels: GERMANE_NONCOMMITTAL_VOTES=true germane calibrate --file FILE"


def _limit(voted: Votes) -> str:
    return f"so at most {voted.at_most:.1%} with a certainty of 95 % ({FALSE_VOTES:.0%} may be)"


def _as_dict(n: int, floors: list[Floor], found: list[Agreement], voted: Votes, *, saved: bool) -> dict[str, Any]:
    from germane.scorers.calibration.baseline_similarity import LEAST

    return {
        "exchanges": n,
        "enough": LEAST,
        "floors": [{**asdict(one.calibration), "pairs": one.pairs, "interval": asdict(one.interval)} for one in floors],
        "saved": saved,
        "labelled": found[0].of if found else 0,
        "agreement": [one.as_dict() for one in found],
        "votes": voted.as_dict(),
    }
