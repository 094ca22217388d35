"""``germane receive``: receive OTLP from applications in any language."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from germane import storage
from germane.cli.core.command import DATABASE, Command, database_setting, import_option
from germane.cli.core.output import EXIT_ERROR, log_line
from germane.cli.core.params import BYTE_SIZE, EXISTING_FILE, LISTEN_ADDRESS, NAME_VALUE, ListenAddress
from germane.cli.core.signals import handle_shutdown_signals
from germane.cli.core.store import wait_for_database

SHUTDOWN_TIMEOUT: Final = 20.0
"""In seconds. Together with the servers' own, less than the default termination grace period in Kubernetes."""
METRICS_TIMEOUT: Final = 3.0
"""Maximum number of seconds for which the last metrics are exported."""


@click.command("receive", cls=Command, shared=(DATABASE,))
@click.option(
    "--http",
    default="4318",
    show_default=True,
    type=LISTEN_ADDRESS,
    help="Address for OTLP over HTTP. The default host is 127.0.0.1; port 0 picks a free port.",
)
@click.option("--grpc", default="4317", show_default=True, type=LISTEN_ADDRESS, help="Address for OTLP over gRPC.")
@click.option(
    "--token-file", metavar="FILE", type=EXISTING_FILE, help="Read the token that clients must send from this file."
)
@click.option("--tls-cert", metavar="FILE", type=EXISTING_FILE, help="TLS certificate, including its chain (PEM).")
@click.option("--tls-key", metavar="FILE", type=EXISTING_FILE, help="Private key of the TLS certificate (PEM).")
@click.option(
    "--client-ca",
    metavar="FILE",
    type=EXISTING_FILE,
    help="Require client certificates signed by these authorities (PEM).",
)
@click.option(
    "--forward", metavar="URL", help="Forward everything to this OTLP endpoint (HTTP), such as http://localhost:6006."
)
@click.option(
    "--forward-header",
    "forward_headers",
    multiple=True,
    type=NAME_VALUE,
    help="Header for the forwarding target. Repeatable.",
)
@click.option(
    "--redact",
    metavar="MODULE:FUNCTION",
    help="Pass each text through this function before it is stored in an exchange.",
)
@click.option(
    "--trace-wait",
    default=10.0,
    show_default=True,
    type=click.FloatRange(0.1, 3600),
    help="Seconds without new spans after which a trace with a root span is complete.",
)
@click.option(
    "--max-trace-wait",
    default=600.0,
    show_default=True,
    type=click.FloatRange(1, 86_400),
    help="Seconds after which any trace is complete.",
)
@click.option(
    "--max-request-size", default="20MiB", show_default=True, type=BYTE_SIZE, help="Limit on a request's size."
)
@click.option(
    "--max-staged-size",
    default="1GiB",
    show_default=True,
    type=BYTE_SIZE,
    help="Limit on the size of spans that wait in the database. Above it, clients are asked to retry.",
)
@import_option("Import this module with custom recognizers first. Repeatable.")
@click.pass_context
def command(
    context: click.Context,
    http: ListenAddress,
    grpc: ListenAddress,
    token_file: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    client_ca: Path | None,
    forward: str | None,
    forward_headers: tuple[tuple[str, str], ...],
    redact: str | None,
    trace_wait: float,
    max_trace_wait: float,
    max_request_size: int,
    max_staged_size: int,
    modules: tuple[str, ...],
) -> None:
    """Receive OTLP traces and logs until SIGTERM or SIGINT.

    The receiver recognizes questions and answers in the spans of language model applications, and stores them to be
    scored by germane worker. Exits with 0, or with 130 after SIGINT. On non-loopback addresses, it requires a token
    (the `receiver_token` setting or --token-file) or client certificates (--client-ca).
    """
    with handle_shutdown_signals() as shutdown:
        from contextlib import closing
        from functools import partial

        from germane.cli.receiver import load_redact, parse_target, parse_tls, receiver_options
        from germane.receiver import Receiver, Waits
        from germane.settings import load_settings
        from germane.tracer import disconnect

        overrides: dict[str, Any] = {**database_setting()}
        if token_file is not None:
            overrides["receiver_token"] = f"file:{token_file}"
        settings = load_settings(**overrides)
        tls = parse_tls(tls_cert, tls_key, client_ca)
        if names := (*settings.imports, *modules):
            from germane.scorers import import_modules

            import_modules(names)
        options = receiver_options(
            settings,
            http,
            grpc,
            tls,
            redact=load_redact(redact),
            redact_name=redact or "",
            forward=parse_target(forward, forward_headers),
            max_request_size=max_request_size,
            max_staged_size=max_staged_size,
            waits=Waits(root=trace_wait, remote_root=6 * trace_wait, longest=max(trace_wait, max_trace_wait)),
        )
        with closing(storage.TrackingStore(settings.database)) as store:
            receiver = Receiver(store, settings, options)
            wait_for_tables = partial(wait_for_database, store, settings, shutdown)
            with receiver.running(log_line, timeout=SHUTDOWN_TIMEOUT, wait_for_tables=wait_for_tables):
                while receiver.is_serving and not shutdown.wait(1.0):
                    pass
            disconnect(METRICS_TIMEOUT)  # exports the last metrics, if an OTLP endpoint is configured
        context.exit(shutdown.exit_code if shutdown.received else EXIT_ERROR)
