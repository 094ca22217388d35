"""``germane estimate``: requests, tokens and money a day, before anything is turned on."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from germane.cli.commands.estimate.sample import SAMPLE, Basis, basis_of
from germane.cli.commands.report import NOT_ENOUGH_DATA
from germane.cli.commands.score import Columns
from germane.cli.core.output import as_json, database, harmless, print_json, print_table
from germane.settings import LOCAL, Price, Settings, load

if TYPE_CHECKING:
    from germane.cli.commands.estimate.forecast import Forecast, Models

HEADINGS = ("scorer", "requests", "input tokens", "output tokens", "embedded tokens", "dollars")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What will be taken in a day, and what that goes by."""

    rate: float
    """Share of exchanges that is scored."""
    basis: Basis
    models: Models
    scorers: Sequence[Forecast]
    total: Forecast
    notes: Sequence[str]


class Count(click.FloatRange):
    """A number from 0; NaN passes every range."""

    name = "count"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        return number if math.isfinite(number) else self.fail(f"{value!r} is not finite", param, ctx)


@click.command("estimate")
@click.option("--per-day", type=Count(0), metavar="N", help="Exchanges a day, instead of today's traffic.")
@click.option(
    "--file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A sample of exchanges: its rows."
)
@click.option("--columns", type=Columns(), help="Your names of its columns, such as question=q,answer=a.")
@click.option("--scorer", "scorers", multiple=True, metavar="NAME", help="Which; again for more than one.")
@click.option("--judge", metavar="MODEL", help="Judge, when it is not the one of the settings.")
@click.option("--embedder", metavar="MODEL", help="Embedder, when it is not the one of the settings.")
@click.option("--rate", type=click.FloatRange(0, 1), help="Share that is scored, when it is not that of the settings.")
@database
@as_json
@click.pass_context
def command(
    context: click.Context,
    per_day: float | None,
    file: Path | None,
    columns: dict[str, str] | None,
    scorers: tuple[str, ...],
    judge: str | None,
    embedder: str | None,
    rate: float | None,
    database: str | None,
    as_json: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """Forecast what scoring takes in a day. Nothing is sent to any judge or embedder.

    The scorers run on a sample of the stored exchanges, with a judge that only counts what it would be sent.
    """
    given = {"scorers": scorers or None, "judge": judge, "embedder": embedder, "rate": rate, "database": database}
    settings = load(**{name: value for name, value in given.items() if value is not None})
    at_server = settings.has_server or judge is not None
    names, own = _names(settings, at_server=at_server)
    basis = basis_of(settings, per_day=per_day, file=file, columns=columns)
    if basis is None:
        click.echo(
            "There are no exchanges to go by. Say how many there will be: germane estimate --per-day 10000", err=True
        )
        if as_json:
            print_json({"error": "no exchanges"})
        context.exit(NOT_ENOUGH_DATA)
    from germane.cli.commands.estimate.forecast import forecast, models_of, total

    models = models_of(settings, at_server=at_server)
    share = settings.rate if settings.budget is None else 1.0  # of which a budget pays for what it can
    drawn = basis.per_day * share
    found = asyncio.run(forecast(names, settings, models, sample=basis.sample, drawn=drawn, usages=basis.usages))
    ignored = ["with a budget a rate does not count"] if settings.budget and rate is not None else []
    notes = [*ignored, *_unpriced(models, found), *_over(total(found), settings), *_unmeasured(own)]
    outlook = Outlook(rate=share, basis=basis, models=models, scorers=found, total=total(found), notes=notes)
    if as_json:
        print_json(_as_dict(outlook))
    else:
        _print(outlook)


def _names(settings: Settings, *, at_server: bool) -> tuple[list[str], list[str]]:
    """Return the scorers of germane that would run, and others, which may do anything and are not tried.

    Raises:
        SettingsError: there is no scorer of one of the names.
    """
    from germane.scorers import NAMES, build, default_names

    names = settings.scorers
    if names is None:
        names = ("answer_relevancy",) if at_server else default_names(settings) or ("answer_relevancy",)
    own = [name for name in names if name not in NAMES]
    build(settings, own)
    return [name for name in dict.fromkeys(names) if name in NAMES], own


def _unpriced(models: Models, found: Sequence[Forecast]) -> list[str]:
    asked = {
        models.judge: models.judge_price is None and any(each.calls for each in found),
        models.embedder: models.embedder_price is None and any(each.embedded_tokens for each in found),
    }
    return [
        f"the price of {harmless(model)} is not known. Set it in germane.toml, in dollars for a million tokens: "
        f'[prices."{harmless(model)}"], then input = 0.15 and output = 0.60'
        for model, unknown in asked.items()
        if unknown
    ]


def _over(found: Forecast, settings: Settings) -> list[str]:
    from germane.cli.commands.estimate.forecast import over_budget, over_limits

    return [*over_budget(found, settings), *over_limits(found, settings)]


def _unmeasured(own: Sequence[str]) -> list[str]:
    return [f"scorers of your own are not part of this: {', '.join(map(harmless, own))}"] if own else []


def _print(outlook: Outlook) -> None:
    basis, models = outlook.basis, outlook.models
    scored = f"{basis.per_day * outlook.rate:,.0f} of them scored (rate {outlook.rate:g})"
    click.echo(f"{basis.per_day:,.0f} exchanges a day, {basis.traffic}; {scored}.")
    click.echo(f"Measured on {basis.measured_on}. Nothing was sent.\n")
    print_table(HEADINGS, [_row(each) for each in (*outlook.scorers, outlook.total)])
    click.echo(f"\njudge      {_priced(models.judge, models.judge_price)}")
    click.echo(f"embedder   {_priced(models.embedder, models.embedder_price)}")
    click.echo("\n".join(["", *_assumptions(outlook.scorers, basis)]))
    for note in outlook.notes:
        click.echo(f"note: {note}")


def _row(found: Forecast) -> tuple[str, ...]:
    counts = (found.calls, found.input_tokens, found.output_tokens, found.embedded_tokens)
    return harmless(found.scorer, 40), *(f"{count:,.0f}" for count in counts), _dollars(found.dollars)


def _dollars(amount: float | None) -> str:
    if amount is None:
        return "unknown"
    return f"{amount:.4f}" if 0 < amount < 0.1 else f"{amount:,.2f}"


def _priced(model: str, price: Price | None) -> str:
    if price is None:
        return f"{harmless(model)}: price unknown"
    if model.startswith(f"{LOCAL}:"):
        return f"{harmless(model)}: free"
    return f"{harmless(model)}: ${price.input:g} read, ${price.output:g} written, a million tokens"


def _assumptions(found: Sequence[Forecast], basis: Basis) -> list[str]:
    from germane.scorers.factory.dry_run import MORE_TOKENS, TIMES_LEAST
    from germane.scorers.judge.prices import table_date
    from germane.scorers.judge.rate_limit import BYTES_PER_TOKEN

    assumed = [each.scorer for each in found if each.output_from == "assumed" and each.calls]
    measured = [each.scorer for each in found if each.output_from == "measured" and each.calls]
    lines = [f"Input tokens are bytes / {BYTES_PER_TOKEN}. List prices are of {table_date()}, and change."]
    if measured:
        scores = sum(basis.usages[name].scores for name in measured)
        lines.append(f"Output tokens of {', '.join(measured)}: the mean of {scores:,} scores of the last week.")
    if assumed:
        what = f"{TIMES_LEAST} times the least reply and {MORE_TOKENS} more; a judge that thinks first writes many more"
        lines.append(f"Output tokens of {', '.join(assumed)} are assumed: {what}.")
    lines.append(
        "Not counted: what is asked again after a failure, and what is saved where exchanges or requests are equal."
    )
    return lines


def _as_dict(outlook: Outlook) -> Mapping[str, Any]:
    from germane.scorers.judge.prices import table_date

    basis, models = outlook.basis, outlook.models
    return {
        "per_day": basis.per_day,
        "rate": outlook.rate,
        "scored_per_day": basis.per_day * outlook.rate,
        "traffic": basis.traffic,
        "sample": {"from": basis.source, "exchanges": len(basis.sample), "most": SAMPLE},
        "judge": {"model": models.judge, "price": models.judge_price and models.judge_price.model_dump()},
        "embedder": {"model": models.embedder, "price": models.embedder_price and models.embedder_price.model_dump()},
        "prices_of": table_date().isoformat(),
        "scorers": [asdict(each) for each in outlook.scorers],
        "total": {name: value for name, value in asdict(outlook.total).items() if name != "scorer"},
        "notes": list(outlook.notes),
    }
