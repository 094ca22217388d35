"""``germane pull``: store the past traces of a trace backend as exchanges."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from germane.cli.core.command import Command, import_option, wants_json
from germane.cli.core.forecast import forecast_rescoring, forecasts_as_json, print_forecasts
from germane.cli.core.output import log_line, print_json
from germane.cli.core.params import SINCE
from germane.cli.core.store import load_command_settings, open_store

if TYPE_CHECKING:
    from germane.receiver import TracePull
    from germane.settings import Settings


@click.command("pull", cls=Command)
@click.argument("source", type=click.Choice(["phoenix", "mlflow"]))
@click.option("--since", type=SINCE, default="30d", show_default=True, help="Only traces that started since this time.")
@click.option("--dry-run", is_flag=True, help="Only count the traces, and estimate the cost of scoring them.")
@click.option("--url", default="", help="Defaults to PHOENIX_COLLECTOR_ENDPOINT or MLFLOW_TRACKING_URI.")
@click.option(
    "--project",
    default="",
    help="Project, or name or id of the experiment. Defaults to PHOENIX_PROJECT_NAME or MLFLOW_EXPERIMENT_NAME.",
)
@click.option("--redact", metavar="MODULE:FUNCTION", help="Pass each text through this function before it is stored.")
@import_option("Import this module with custom recognizers first. Repeatable.")
def command(
    source: str,
    since: datetime,
    dry_run: bool,  # noqa: FBT001 - click passes it by name
    url: str,
    project: str,
    redact: str | None,
    modules: tuple[str, ...],
) -> None:
    """Store the past traces of Phoenix or MLflow as exchanges.

    The traces are recognized like received ones, keep their times and ids, and are sampled and scored by germane
    worker. Traces whose exchange is stored already are skipped, so the command can be repeated. If it is interrupted,
    it continues where it stopped. The API key is read from PHOENIX_API_KEY or MLFLOW_TRACKING_TOKEN.
    """
    from germane.cli.receiver import load_redact
    from germane.receiver import SOURCES, ExchangeBuilder, TracePull
    from germane.recognizers import registered_recognizers
    from germane.scorers import import_modules

    settings = load_command_settings()
    import_modules((*settings.imports, *modules))
    # The limit applies to traffic, not to its history.
    unlimited = settings.model_copy(update={"max_exchanges_per_minute": sys.maxsize})
    builder = ExchangeBuilder(unlimited, redact=load_redact(redact), custom=registered_recognizers())
    earliest = datetime.now(UTC) - timedelta(days=settings.retention.text_days)
    if since < earliest - timedelta(minutes=1):
        log_line(
            f"traces before {earliest:%Y-%m-%d %H:%M} UTC are left out: retention.text_days would erase their texts"
        )
    with open_store(check_names=False) as store:
        traces, service = SOURCES[source](url, project), settings.service
        pull = TracePull(store, traces, builder, service=service, log=log_line, is_dry=dry_run)
        pull.run(max(since, earliest))
    _print(pull, settings, is_dry=dry_run)


def _print(pull: TracePull, settings: Settings, *, is_dry: bool) -> None:
    from germane.scorers import build_scorers

    counted, new = pull.counts, pull.counts.recognized - pull.stored_before
    fingerprints = {scorer.name: scorer.fingerprint for scorer in build_scorers(settings).scorers} if is_dry else {}
    share = settings.sample_rate if settings.budget is None else 1.0  # a budget has no fixed rate
    counts = dict.fromkeys(fingerprints, round(new * share))
    forecasts = forecast_rescoring(settings, counts, dict.fromkeys(counts, pull.sample))
    if wants_json():
        unreadable = [
            {"service": service, "scope": scope, "reason": reason, "traces": number}
            for (service, scope, reason), number in counted.unreadable.most_common()
        ]
        totals = {"dry_run": is_dry, "traces": counted.seen, "recognized": counted.recognized, "new": new}
        others = {"ignored": counted.ignored, "unreadable": unreadable, "invalid_spans": pull.rejected}
        print_json({**totals, **others, "scorers": forecasts_as_json(counts, forecasts, fingerprints)})
        return
    for line in counted.describe():
        click.echo(line)
    if pull.rejected:
        click.echo(f"  {pull.rejected:,} invalid spans are left out")
    click.echo(f"{new:,} {'to store' if is_dry else 'stored'}, {pull.stored_before:,} stored before")
    if is_dry:
        click.echo("To score:")
        print_forecasts(counts, forecasts)
