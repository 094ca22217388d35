"""``germane worker``: score exchanges in a separate process."""

from __future__ import annotations

import click

from germane.cli.core.command import DATABASE, Command, database_setting, import_option
from germane.cli.core.params import LISTEN_ADDRESS, ListenAddress
from germane.cli.core.signals import WORKER_SHUTDOWN_TIMEOUT, handle_shutdown_signals


@click.command("worker", cls=Command, shared=(DATABASE,))
@click.option("--once", is_flag=True, help="Sample, score ready tasks and evaluate rules once, then exit.")
@click.option("--drain", is_flag=True, help="Exit when the backlog is empty.")
@click.option(
    "--concurrency",
    type=click.IntRange(1, 1024),
    help="Maximum number of concurrent judge requests. Overrides the setting.",
)
@import_option("Import this module with custom scorers first. Repeatable.")
@click.option(
    "--shutdown-timeout",
    default=WORKER_SHUTDOWN_TIMEOUT,
    show_default=True,
    type=click.FloatRange(0),
    help="Maximum duration of a graceful shutdown, in seconds.",
)
@click.option(
    "--metrics",
    "metrics_address",
    type=LISTEN_ADDRESS,
    help="Serve /metrics for Prometheus on this address. The default host is 127.0.0.1; port 0 picks a free port.",
)
@click.option("--otlp", is_flag=True, help="Also receive OTLP traces and logs, as germane receive does.")
@click.option(
    "--otlp-http",
    default="4318",
    show_default=True,
    type=LISTEN_ADDRESS,
    help="Address for OTLP over HTTP. The default host is 127.0.0.1; port 0 picks a free port.",
)
@click.option("--otlp-grpc", default="4317", show_default=True, type=LISTEN_ADDRESS, help="Address for OTLP over gRPC.")
@click.option(
    "--redact",
    metavar="MODULE:FUNCTION",
    help="With --otlp: pass each text through this function before it is stored in an exchange.",
)
@click.pass_context
def command(
    context: click.Context,
    once: bool,  # noqa: FBT001 - click passes it by name
    drain: bool,  # noqa: FBT001
    concurrency: int | None,
    modules: tuple[str, ...],
    shutdown_timeout: float,
    metrics_address: ListenAddress | None,
    otlp: bool,  # noqa: FBT001
    otlp_http: ListenAddress,
    otlp_grpc: ListenAddress,
    redact: str | None,
) -> None:
    """Score captured exchanges until SIGTERM or SIGINT.

    The worker samples, scores and evaluates alert rules, regardless of the `role` setting. On SIGTERM or SIGINT, it
    stops claiming tasks, finishes or releases the tasks in progress, and exits with 0, or with 130 after SIGINT. A
    second signal terminates it immediately.
    """
    if once and drain:
        raise click.UsageError("--once and --drain are mutually exclusive")
    if otlp and (once or drain):
        raise click.UsageError("--otlp receives until the worker is stopped, so it excludes --once and --drain")
    options = {"concurrency": concurrency, "imports": modules, **database_setting()}
    overrides = {"role": "all", **{name: value for name, value in options.items() if value}}
    with handle_shutdown_signals() as shutdown:
        from germane.cli.receiver import load_redact, receiver_options
        from germane.cli.worker import Worker
        from germane.settings import load_settings

        receiver = None
        if otlp:
            redactor = load_redact(redact)
            receiver = receiver_options(load_settings(**overrides), otlp_http, otlp_grpc, redact=redactor)
        worker = Worker(
            overrides,
            shutdown,
            shutdown_timeout=shutdown_timeout,
            metrics_address=metrics_address,
            otlp=receiver,
        )
        context.exit(worker.run("once" if once else "drain" if drain else "forever"))
