"""``germane alerts silence`` and ``unsilence``: a time in which nobody is told."""

from __future__ import annotations

from datetime import timedelta

import click

from germane.cli.alerts.listing import SHOWN, silence_as_dict, silence_line
from germane.cli.opening import opened
from germane.cli.output import as_json, database, print_json
from germane.cli.since import Span


@click.command("silence")
@click.option("--rule", metavar="PATTERN", help="Only alerts of such rules.")
@click.option("--service", metavar="PATTERN", help="Only of such services.")
@click.option("--route", metavar="PATTERN", help="Only of such routes.")
@click.option("--scorer", metavar="PATTERN", help="Only of such scorers.")
@click.option("--for", "span", type=Span(), required=True, help="How long, such as 2h or 7d.")
@click.option("--by", metavar="NAME", help="Who says so.")
@click.option("--comment", help="Why.")
@database
@as_json
def silence(
    rule: str | None,
    service: str | None,
    route: str | None,
    scorer: str | None,
    span: timedelta,
    by: str | None,
    comment: str | None,
    database: str | None,
    as_json: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """Have nobody told of alerts that match. Of all if nothing is named; they fire and end as ever.

    Patterns are such as `docs-*`. What still fires afterwards is told then.
    """
    from germane.monitor import acts

    named = {"rule": rule, "service": service, "route": route, "scorer": scorer}
    matchers = {name: pattern for name, pattern in named.items() if pattern is not None}
    with opened(database) as store:
        made = acts.silence(store, matchers, until=span, by=by, comment=comment)
    if as_json:
        print_json({"silence": silence_as_dict(made)})
    else:
        click.echo(silence_line(made))


@click.command("unsilence")
@click.argument("silence_id", metavar="ID")
@database
@as_json
def unsilence(
    silence_id: str,
    database: str | None,
    as_json: bool,  # noqa: FBT001 - click passes it by name
) -> None:
    """End a silence now, by its id or the beginning of it."""
    from germane.monitor import acts

    with opened(database) as store:
        ended = acts.unsilence(store, silence_id)
    if as_json:
        print_json({"ended": ended.id})
    else:
        click.echo(f"silence {ended.id[:SHOWN]} is over")
