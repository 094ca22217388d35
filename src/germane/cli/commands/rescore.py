"""``germane rescore``: answers are scored again, by the judge of today or after what stood in the way is mended."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from germane.cli.core.output import Since, as_json, database, harmless, print_json
from germane.cli.core.store import opened, settings_for
from germane.errors import UsageError
from germane.sanitize import counted
from germane.score import Reason

if TYPE_CHECKING:
    from germane.cli.commands.estimate.forecast import Forecast
    from germane.settings import Settings
    from germane.storage import AnswerFilter, Rescored, Store

AT_ONCE: Final = 500
"""Answers in one transaction."""
SAMPLE: Final = 20
"""Answers by which the requests are forecast."""
ANY: Final = "any"
FAILURES: Final = sorted(reason.value for reason in Reason if reason.state == "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be scored again."""

    pairs: Sequence[tuple[str, str]]
    """Exchanges, each with a scorer."""
    scorers: Mapping[str, str]
    """Fingerprints in force."""
    from_workers: bool
    """Whether a process that scores told of them."""
    more: bool
    """Whether there are more than the limit lets through."""


@click.command("rescore")
@click.option("--since", type=Since(), default="24h", show_default=True, help="Answers given since then.")
@click.option("--until", type=Since(), help="Answers given before then.")
@click.option("--route", help="Only this route.")
@click.option("--scorer", "scorers", multiple=True, metavar="NAME", help="Only this scorer; again for more than one.")
@click.option("--below", type=click.FloatRange(-1, 1), help="Only scores below this.")
@click.option(
    "--failed",
    type=click.Choice([ANY, *FAILURES]),
    is_flag=False,
    flag_value=ANY,
    help="Only what failed, for this reason where one is given.",
    metavar="[REASON]",
)
@click.option("--limit", type=click.IntRange(1, 1_000_000), default=10_000, show_default=True, help="At most so many.")
@click.option("--dry-run", is_flag=True, help="Say what would be scored and what it takes, and change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask first, on a terminal.")
@database
@as_json
def command(
    since: datetime,
    until: datetime | None,
    route: str | None,
    scorers: tuple[str, ...],
    below: float | None,
    failed: str | None,
    limit: int,
    dry_run: bool,  # noqa: FBT001 - click passes it by name
    yes: bool,  # noqa: FBT001
    database: str | None,
    as_json: bool,  # noqa: FBT001
) -> None:
    """Have answers scored again. With the judge and the prompts that are in force.

    A score of the same fingerprint stands until the new one takes its place; one of another fingerprint stays beside
    the new one. Whoever scores does it next, within budget and limits; what has no text any more is left out.
    """
    if below is not None and failed is not None:
        raise click.UsageError("--below picks scores, and --failed what has none: give one of them")
    from germane.storage import AnswerFilter

    settings = settings_for(database)
    chosen = AnswerFilter(since=since, until=until, route=route, below=below)
    with opened(database) as store:
        plan = _plan(store, settings, _filters(chosen, failed), scorers, limit)
        forecasts = _forecast(store, settings, plan) if plan.pairs else []
        if not as_json:
            _print_plan(plan, forecasts, picked_by_value=below is not None)
            _ask(plan, needed=not (dry_run or yes))
        found = None if dry_run else _rescore(store, settings, plan)
    if as_json:
        print_json(_as_dict(plan, forecasts, found))
    elif found is not None:
        _print_outcome(plan, found)


def _ask(plan: Plan, *, needed: bool) -> None:
    """Ask whoever sits at a terminal; a program is not asked.

    Raises:
        click.Abort: they do not want it.
    """
    if needed and plan.pairs and sys.stdin.isatty() and sys.stdout.isatty():
        click.confirm("Score these again?", default=True, abort=True)


def _filters(chosen: AnswerFilter, failed: str | None) -> list[AnswerFilter]:
    """Return what is looked for: what failed, or scores, and without either both."""
    from dataclasses import replace

    reason = None if failed in {None, ANY} else failed
    of_failures = replace(chosen, state="failed", reason=reason)
    if failed is not None:
        return [of_failures]
    return [chosen] if chosen.below is not None else [chosen, of_failures]


def _plan(store: Store, settings: Settings, filters: Sequence[AnswerFilter], asked: Sequence[str], limit: int) -> Plan:
    """Return which answers of which scorers.

    Raises:
        UsageError: a scorer is asked for that does not score here.
    """
    in_force, from_workers = _in_force(store, settings)
    if unknown := [name for name in asked if name not in in_force]:
        known = ", ".join(sorted(in_force)) or "none"
        raise UsageError(f"{unknown[0]!r:.60} does not score here: in force are {known}")
    names = list(asked) or sorted(in_force)
    pairs: dict[tuple[str, str], None] = {}
    for pair in _pairs(store, filters, names):
        if len(pairs) == limit and pair not in pairs:
            return Plan(pairs=list(pairs), scorers=in_force, from_workers=from_workers, more=True)
        pairs[pair] = None
    return Plan(pairs=list(pairs), scorers=in_force, from_workers=from_workers, more=False)


def _in_force(store: Store, settings: Settings) -> tuple[dict[str, str], bool]:
    """Return fingerprints by scorer: those of the processes that score, else those of the settings here."""
    found: dict[str, str] = {}
    for worker in store.workers():
        for name, fingerprint in worker.scorers.items():
            found.setdefault(name, fingerprint)
    if found:
        return found, True
    from germane.scorers import build

    return {scorer.name: scorer.fingerprint for scorer in build(settings).scorers}, False


def _pairs(store: Store, filters: Sequence[AnswerFilter], names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Go through the answers, the newest first."""
    from dataclasses import replace

    for chosen in filters:
        for name in names:
            after, more = None, True
            while more:
                page = store.answers(replace(chosen, scorer=name), sort="newest", after=after, limit=AT_ONCE)
                yield from ((one.exchange.id, name) for one in page.answers)
                after = page.after
                more = after is not None


def _forecast(store: Store, settings: Settings, plan: Plan) -> list[Forecast]:
    """Return what that takes, by a sample of it; nothing is sent to anybody."""
    from germane.cli.commands.estimate.forecast import forecast, models_of
    from germane.scorers import NAMES

    models, found = models_of(settings, at_server=settings.has_server), list[Any]()
    for name in sorted({name for _, name in plan.pairs} & set(NAMES)):
        ids = [exchange_id for exchange_id, scorer in plan.pairs if scorer == name]
        sample = list(store.exchanges_of(ids[:: max(1, len(ids) // SAMPLE)][:SAMPLE]).values())
        found += asyncio.run(forecast([name], settings, models, sample=sample, drawn=len(ids), usages={}))
    return found


def _rescore(store: Store, settings: Settings, plan: Plan) -> Rescored:
    from germane.storage import Rescored

    total = Rescored()
    for start in range(0, len(plan.pairs), AT_ONCE):
        some = plan.pairs[start : start + AT_ONCE]
        total += store.rescore(some, plan.scorers, budgeted=settings.budget is not None)
    return total


def _print_plan(plan: Plan, forecasts: Sequence[Forecast], *, picked_by_value: bool) -> None:
    some = f"The newest {len(plan.pairs):,}" if plan.more else f"{len(plan.pairs):,}"
    click.echo(f"{some} to score again:" if plan.pairs else "Nothing to score again.")
    for name in sorted({name for _, name in plan.pairs}):
        count = sum(scorer == name for _, scorer in plan.pairs)
        click.echo(f"  {harmless(name, 40)}: {counted(count, 'answer')}{_taking(name, forecasts)}")
    if picked_by_value and plan.pairs:
        click.echo("note: only low scores are made anew, and some rise by chance: the mean rises a little with them.")


def _taking(name: str, forecasts: Sequence[Forecast]) -> str:
    one = next((one for one in forecasts if one.scorer == name), None)
    if one is None:
        return ", requests unknown"
    dollars = "" if one.dollars is None else f", about ${one.dollars:,.4f}"
    return f", about {counted(round(one.calls), 'request')}{dollars}"


_SAID: Final = {
    "ready": "are scored by whoever scores next",
    "waiting": "wait already, or are being scored",
    "erased": "have no text any more",
    "left_out": "were left out by the draw or the budget, and stay so",
    "unknown": "have gone, or nobody has their scorer",
}


def _print_outcome(plan: Plan, found: Rescored) -> None:
    for name, count in asdict(found).items():
        if count:
            click.echo(f"{count:,} {_SAID[name]}")
    if found.ready and not plan.from_workers:
        click.echo("note: no process scores now. Start one: germane worker")


def _as_dict(plan: Plan, forecasts: Sequence[Forecast], found: Rescored | None) -> dict[str, Any]:
    names = sorted({name for _, name in plan.pairs})
    by_name = {one.scorer: asdict(one) for one in forecasts}
    return {
        "dry_run": found is None,
        "answers": len(plan.pairs),
        "more": plan.more,
        "scorers": [
            {
                "scorer": name,
                "fingerprint": plan.scorers[name],
                "answers": sum(scorer == name for _, scorer in plan.pairs),
                "requests": by_name.get(name, {}).get("calls"),
                "dollars": by_name.get(name, {}).get("dollars"),
            }
            for name in names
        ],
        "outcome": None if found is None else asdict(found),
    }
