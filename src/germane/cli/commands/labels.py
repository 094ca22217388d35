"""``germane labels``: draw answers to be labeled by people, and show how far that is."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from germane import insights, sanitize, storage
from germane.cli.core.command import wants_json
from germane.cli.core.lazy_group import SuggestingGroup
from germane.cli.core.output import print_json, print_table
from germane.cli.core.params import PAST_TIME
from germane.cli.core.store import load_command_settings, open_store
from germane.records import select

if TYPE_CHECKING:
    from germane.storage import LabelWave

_COUNTS: Final = ("size", "labeled", "cannot_tell", "skipped", "erased", "open")


@click.group("labels", cls=SuggestingGroup)
def command() -> None:
    """Draw answers at random to be labeled, or show the progress.

    People label them on the dashboard's page /labels.
    """


@command.command("draw")
@click.option(
    "--count", default=50, show_default=True, type=click.IntRange(1, storage.MAX_DRAWN), help="Number of answers."
)
@click.option("--since", type=PAST_TIME, default="30d", show_default=True, help="Only answers given since this time.")
@click.option("--service", help="Only this service.")
@click.option("--route", help="Only this route.")
@click.option(
    "--scorer", help="Only answers with a score of this scorer. Defaults to that of the dashboard's overview."
)
def draw(count: int, since: datetime, service: str | None, route: str | None, scorer: str | None) -> None:
    """Draw answers at random to be labeled.

    Within a route, each answer of the window has the same chance, whether or not suspicious answers are scored more
    often. Each draw is a wave of fixed size: to get more labels, draw another one.
    """
    with open_store() as store:
        wave = insights.draw_wave(store, count, since, store.now(), scorer=scorer, service=service, route=route)
    link = _link(wave)
    if wants_json():
        print_json({"wave": wave_as_dict(wave), "link": link})
        return
    window = f"{wave.since:%Y-%m-%d %H:%M} to {wave.until:%Y-%m-%d %H:%M} UTC"
    number = sanitize.count_noun(wave.total.size, "answer")
    click.echo(f"Drew {number} with a score of {sanitize.line(wave.scorer, 60)}, {window}: wave {wave.id}\n")
    rows = [(f"  {sanitize.line(one.route, 40)}", sanitize.line(one.service, 40), f"{one.size}") for one in wave.routes]
    print_table(("  route", "service", "answers"), rows)
    click.echo(f"\nLabel them on the dashboard: {link}")


@command.command("status")
@click.option("--scorer", help="Only waves for this scorer.")
def status(scorer: str | None) -> None:
    """Show the newest waves and how many of their answers are labeled."""
    with open_store() as store:
        waves = store.draws.list_waves(scorer=scorer)
    if wants_json():
        print_json({"waves": [wave_as_dict(wave) for wave in waves]})
    elif waves:
        headings = ("wave", "scorer", "window", *(name.replace("_", " ") for name in _COUNTS))
        print_table(headings, [_format_row(wave) for wave in waves])
    else:
        click.echo("No answers have been drawn yet. Draw 50 with: germane labels draw")


def wave_as_dict(wave: LabelWave) -> dict[str, Any]:
    """Return a wave and its progress as a dict for JSON output."""
    routes = [select(one, "service", "route", *_COUNTS) for one in wave.routes]
    named = select(wave, "id", "scorer", "fingerprint", "since", "until", "drawn_at")
    return {**named, **select(wave.total, *_COUNTS), "routes": routes}


def _format_row(wave: LabelWave) -> list[str]:
    window = f"{wave.since:%Y-%m-%d} to {wave.until:%Y-%m-%d}"
    return [wave.id, sanitize.line(wave.scorer, 40), window, *map(str, select(wave.total, *_COUNTS).values())]


def _link(wave: LabelWave) -> str:
    """Return the URL of a wave's page if the settings contain the dashboard's, otherwise its path."""
    base, is_known, _ = (load_command_settings().exchange_url or "").partition("/a/{id}")
    return f"{base if is_known else ''}/labels/{wave.id}"
