"""What a process that scores shows at ``/metrics``, beside its work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from starlette.applications import Starlette

from germane.cli.address import Address
from germane.dashboard.app import create_metrics_app
from germane.dashboard.hosts import is_loopback
from germane.dashboard.metrics import exposition_of
from germane.dashboard.server import Server
from germane.settings import Settings
from germane.tracer import expose


@contextmanager
def showing(settings: Settings, address: Address, say: Callable[[str], None]) -> Iterator[None]:
    """Show gauges of the database and what this process measures, until the block ends. To begin before the work does.

    Raises:
        CannotListen: the address is taken, or is none of this machine.
        UsageError: others could read it there, and there is no token.
    """
    if settings.token is None and not is_loopback(address.host):
        raise click.UsageError(
            f"on {address.host} others can read what is measured: set GERMANE_TOKEN, to 16 characters or more"
        )
    app = create_metrics_app(settings)
    server = Server(app, host=address.host, port=address.port)
    with exposing(app), server.running():
        say(f"metrics are shown at {server.address}/metrics")
        yield


@contextmanager
def exposing(app: Starlette) -> Iterator[None]:
    """Have an application show at ``/metrics`` what this process measures, too. To begin before it measures."""
    expose(exposition_of(app).registry)
    try:
        yield
    finally:
        expose(None)
