"""``germane serve``: the pages, for people and for Prometheus."""

from __future__ import annotations

import gc
import secrets
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from germane.cli.core.browser import local, open_in_browser
from germane.cli.core.output import database
from germane.cli.core.signals import Ending, listening

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from germane.cli.worker import Worker
    from germane.dashboard.server import Server
    from germane.settings import Settings

PORT = 8642
WORKER_GRACE = 30.0
"""Seconds that a stop of the worker may take, as of ``germane worker``."""


def _as_names(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    from germane.dashboard.web.hosts import ANY, name_of

    for name in given:
        if name not in {ANY, name_of(name)}:
            raise click.BadParameter(f"{name!r:.100} is no name such as germane.example.com")
    return given


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; others need a token.")
@click.option("--port", default=PORT, show_default=True, type=click.IntRange(0, 65_535), help="0 takes a free one.")
@click.option(
    "--host-name",
    "names",
    multiple=True,
    metavar="NAME",
    callback=_as_names,
    help="Name it is asked for by; repeatable.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read the token there.",
)
@click.option("--generate-token", is_flag=True, help="Make a token, and show it once.")
@click.option("--read-only", is_flag=True, help="Let nobody change anything.")
@click.option("--with-worker", is_flag=True, help="Score here as well, as germane worker does.")
@click.option("--open", "opens", is_flag=True, help="Open it in the browser.")
@database
@click.pass_context
def command(context: click.Context, /, database: str | None, **given: Any) -> None:
    """Show trends, worst answers and alerts in the browser. Until SIGTERM or SIGINT.

    It exits with 0 then, after SIGINT with 130. On any address but this machine's own it asks for a token: the setting
    token (GERMANE_TOKEN), or a file, or one that it makes.
    """
    if given["token_file"] and given["generate_token"]:
        raise click.UsageError("--token-file and --generate-token exclude one another")
    with listening() as ending:
        context.exit(_serve(ending, database, given))


def _settings(database: str | None, given: dict[str, Any]) -> Settings:
    """Read the settings; those that options stand for win."""
    from germane.dashboard.web.hosts import is_loopback
    from germane.settings import load

    settings = load(**_arguments(database, given))
    if settings.token is None and not is_loopback(given["host"]):
        raise click.UsageError(f"on {given['host'] or 'all addresses'} others can look at what people ask. {_HOW}")
    return settings


_HOW = (
    "Give it a token, of 16 characters or more: set GERMANE_TOKEN, or --token-file FILE, or let --generate-token make "
    "one."
)


def _arguments(database: str | None, given: dict[str, Any]) -> dict[str, Any]:
    arguments = {} if database is None else {"database": database}
    if given["generate_token"]:
        return arguments | {"token": _generated()}
    return arguments | ({"token": f"file:{given['token_file']}"} if given["token_file"] else {})


def _generated() -> str:
    token = secrets.token_urlsafe(24)
    click.echo(f"germane made this token, and shows it only now: {token}", err=True)
    return token


def _serve(ending: Ending, database: str | None, given: dict[str, Any]) -> int:
    with _quickly():
        server, app, worker = _made(ending, database, given)
    with server.running(), _measuring(app, worker):
        click.echo(f"germane serves on {server.address}", err=True)
        if given["opens"]:
            open_in_browser(local(server.address))
        return _until_told(server, ending) if worker is None else worker.run("for ever")


@contextmanager
def _quickly() -> Iterator[None]:
    """Leave the garbage of imports lie: looking through all that stays takes a tenth of their time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _measuring(app: Starlette, worker: Worker | None) -> AbstractContextManager[object]:
    """Show on ``/metrics`` what a worker in this process measures."""
    if worker is None:
        return nullcontext()
    from germane.cli.worker import exposing

    return exposing(app)


def _made(ending: Ending, database: str | None, given: dict[str, Any]) -> tuple[Server, Starlette, Worker | None]:
    settings = _settings(database, given)
    from germane.dashboard import create_app
    from germane.dashboard.server import Server

    worker = _worker(database, ending) if given["with_worker"] else None
    app = create_app(settings, read_only=given["read_only"], hosts=(*given["names"], given["host"]))
    return Server(app, host=given["host"], port=given["port"]), app, worker


def _worker(database: str | None, ending: Ending) -> Worker:
    from germane.cli.worker import Worker

    given = {} if database is None else {"database": database}
    return Worker(given | {"role": "all"}, ending, grace=WORKER_GRACE)


def _until_told(server: Server, ending: Ending) -> int:
    """Wait for a signal; return the exit code, which is 1 when serving ended before one came."""
    while server.serves and not ending.wait(1.0):
        pass
    return ending.code if ending.told else 1
