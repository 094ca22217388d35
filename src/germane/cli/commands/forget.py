"""``germane forget``: one person's exchanges go, with all that is said of them."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from germane.cli.core.output import as_json, database, harmless, print_json
from germane.cli.core.store import opened
from germane.sanitize import counted

if TYPE_CHECKING:
    from germane.storage import Removed, Store

WHAT_STAYS = """What stays: counts, which name nobody; spans, alerts and exports that have left; backups; for a while,
bytes in the database's log, which 'germane db vacuum' empties on SQLite. What a process has captured and not
written yet comes within seconds: run this again then."""


class Pair(click.ParamType[tuple[str, str]]):
    """A name and a value: ``tenant=acme``."""

    name = "name=value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]  # click passes what is converted already
        name, sign, wanted = value.partition("=")
        if not (name and sign):
            self.fail(f"{value!r} is not like tenant=acme", param, ctx)
        return name, wanted


@click.command("forget")
@click.option("--user", help="As the exchanges have it; labels that this user gave go too.")
@click.option("--session", help="As the exchanges have it.")
@click.option("--attribute", type=Pair(), help="Such as tenant=acme; flags are true and false.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Say what would go, and change nothing.")
@database
@as_json
@click.pass_context
def command(
    context: click.Context,
    user: str | None,
    session: str | None,
    attribute: tuple[str, str] | None,
    yes: bool,  # noqa: FBT001 - click passes it by name
    dry_run: bool,  # noqa: FBT001
    database: str | None,
    as_json: bool,  # noqa: FBT001
) -> None:
    """Delete all of one user, session or attribute. Exchanges go with their scores and labels."""
    person: dict[str, Any] = {"user": user, "session": session, "attribute": attribute}
    given = [value for value in person.values() if value is not None]
    if len(given) != 1 or not all(given):
        raise click.UsageError("name one of --user, --session and --attribute")
    asks = not (yes or dry_run)
    if asks and (as_json or not sys.stdin.isatty()):
        raise click.UsageError("nobody can be asked here: say --yes, or --dry-run to see what would go")
    with opened(database) as store:
        if asks and not _confirmed(store, person):
            context.exit(1)
        removed, name = store.forget(**person, dry_run=dry_run), store.name
    if as_json:
        print_json({"database": name, "dry_run": dry_run, "removed": asdict(removed)})
    elif not removed:
        click.echo(f"{name} has nothing of {_named(person)}.")
    else:
        click.echo(f"{'Would go' if dry_run else 'Gone'} from {name}: {_counted(removed)}.\n{WHAT_STAYS}")


def _confirmed(store: Store, person: dict[str, Any]) -> bool:
    """Return whether to go on, after a look at what there is; where there is nothing, nobody is asked."""
    found = store.forget(**person, dry_run=True)
    if not found:
        return True
    click.echo(f"{store.name} has of {_named(person)}: {_counted(found)}")
    confirmed = click.confirm("Delete all of it for good?")
    if not confirmed:
        click.echo("Nothing was deleted.")
    return confirmed


def _named(person: dict[str, Any]) -> str:
    """Return whom it is about, such as "user u1"."""
    name, value = next((name, value) for name, value in person.items() if value is not None)
    return f"{name} {harmless(value if isinstance(value, str) else '='.join(value), 80)}"


def _counted(removed: Removed) -> str:
    counts = {
        "exchange": removed.exchanges,
        "score": removed.scores,
        "label": removed.feedback,
        "waiting task": removed.expired,
    }
    return ", ".join(counted(count, name) for name, count in counts.items() if count)
