"""``germane serve``: serve the dashboard and the Prometheus endpoint."""

from __future__ import annotations

import gc
import secrets
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import click

from germane import dashboard, storage
from germane.cli.core.command import DATABASE, Command, database_setting
from germane.cli.core.output import EXIT_ERROR, open_in_browser
from germane.cli.core.params import EXISTING_FILE
from germane.cli.core.signals import WORKER_SHUTDOWN_TIMEOUT, handle_shutdown_signals

DEFAULT_PORT: Final = 8642


def _check_host_names(_context: click.Context, _parameter: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if name not in {dashboard.ANY_HOST, dashboard.parse_host(name)}:
            raise click.BadParameter(f"{name!r:.100} is not a host name such as germane.example.com")
    return names


@click.command("serve", cls=Command, shared=(DATABASE,))
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. Non-loopback addresses require a token.",
)
@click.option(
    "--port",
    default=DEFAULT_PORT,
    show_default=True,
    type=click.IntRange(0, 65_535),
    help="Port to listen on. 0 picks a free port.",
)
@click.option(
    "--allowed-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    callback=_check_host_names,
    help="Accept requests for this host name, in addition to the `allowed_hosts` setting. Repeatable.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    type=EXISTING_FILE,
    help="Read the token from this file.",
)
@click.option("--generate-token", is_flag=True, help="Generate a token and print it once.")
@click.option("--read-only", is_flag=True, help="Do not allow any changes.")
@click.option("--with-worker", is_flag=True, help="Also score in this process, as germane worker does.")
@click.option("--open", "open_page", is_flag=True, help="Open the dashboard in the browser.")
@click.pass_context
def command(
    context: click.Context,
    host: str,
    port: int,
    allowed_hosts: tuple[str, ...],
    token_file: Path | None,
    generate_token: bool,  # noqa: FBT001 - click passes it by name
    read_only: bool,  # noqa: FBT001
    with_worker: bool,  # noqa: FBT001
    open_page: bool,  # noqa: FBT001
) -> None:
    """Serve the dashboard until SIGTERM or SIGINT.

    Exits with 0, or with 130 after SIGINT. On non-loopback addresses, the dashboard requires a token:
    the `dashboard_token` setting (GERMANE_DASHBOARD_TOKEN), --token-file or --generate-token.
    """
    overrides: dict[str, Any] = {**database_setting()}
    with handle_shutdown_signals() as shutdown:
        gc.disable()  # makes the imports about 10% faster
        try:
            from germane.cli.core.absent import describe_absence
            from germane.settings import load_settings
            from germane.web_server import WebServer

            settings = load_settings(**overrides, **_token_setting(token_file, generate=generate_token))
            if settings.dashboard_token is None and not dashboard.is_loopback(host):
                raise click.UsageError(
                    f"the dashboard on {host or 'all addresses'} is reachable from other machines and requires a token "
                    "of at least 16 characters; set GERMANE_DASHBOARD_TOKEN, or pass --token-file or --generate-token"
                )
            worker = None
            if with_worker:
                from germane.cli.worker import Worker

                worker = Worker(overrides | {"role": "all"}, shutdown, shutdown_timeout=WORKER_SHUTDOWN_TIMEOUT)
            app = dashboard.create_app(settings, read_only=read_only, hosts=(*allowed_hosts, host))
            server = WebServer(app, host=host, port=port)
        finally:
            gc.enable()
        metrics: Any = nullcontext()
        if worker is not None:
            from germane.cli.worker import include_process_metrics

            metrics = include_process_metrics(app)
        with server.running(), metrics:
            click.echo(f"serving the dashboard on {server.address}", err=True)
            store = storage.TrackingStore(settings.database)
            # Without the file, which is elsewhere or does not exist yet, the dashboard is empty.
            if store.is_absent and store.path is not None:
                click.echo(str(describe_absence(store.path)), err=True)
            if open_page:
                # A browser cannot open the wildcard addresses.
                open_in_browser(server.address.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:"))
            if worker is not None:
                context.exit(worker.run("forever"))
            while server.is_serving and not shutdown.wait(1.0):
                pass
            context.exit(shutdown.exit_code if shutdown.received else EXIT_ERROR)


def _token_setting(file: Path | None, *, generate: bool) -> dict[str, Any]:
    if file and generate:
        raise click.UsageError("--token-file and --generate-token are mutually exclusive")
    if generate:
        token = secrets.token_urlsafe(24)
        click.echo(f"generated token, shown only once: {token}", err=True)
        return {"dashboard_token": token}
    return {"dashboard_token": f"file:{file}"} if file else {}
