"""Entry point of the command line: registers the commands and maps errors to exit codes."""

from __future__ import annotations

import contextlib
import gc
import io
import logging
import os
import sys
from pathlib import Path
from typing import Final

import click

from germane.cli.core.lazy_group import HelpSections, LazyGroup
from germane.cli.core.output import COMPLETION_VARIABLE, EXIT_ERROR, EXIT_INTERRUPTED, EXIT_NOT_ENOUGH_DATA, print_json
from germane.errors import DatabaseAbsent, GermaneError, UnknownScorer

SECTIONS: Final[HelpSections] = {
    "Getting started": ("init", "doctor", "demo"),
    "Run": ("serve", "worker", "receive"),
    "Inspect": ("report", "trend", "worst", "alerts", "sinks"),
    "Analyze": ("mark", "baseline", "labels", "calibrate"),
    "Score": ("score", "rescore"),
    "Manage data": ("db", "export", "import", "pull", "archive", "prune", "forget"),
    "Configure": ("config", "grafana", "completion"),
}
"""Commands by help heading."""
SUMMARIES: Final = {
    "init": "Create a germane.toml for this environment.",
    "doctor": "Check the installation and suggest fixes.",
    "demo": "Watch germane detect when a RAG application goes wrong.",
    "serve": "Serve the dashboard until SIGTERM or SIGINT.",
    "worker": "Score captured exchanges until SIGTERM or SIGINT.",
    "receive": "Receive OTLP traces and logs until SIGTERM or SIGINT.",
    "report": "Report the scores of each route, or compare two windows.",
    "trend": "Draw the mean of SCORER over time.",
    "worst": "Show the answers with the lowest scores.",
    "alerts": "List open alerts, act on them, or test rules.",
    "sinks": "Show and test sinks, or write scores to them again.",
    "mark": "Record a marker for an event, such as a deployment or a new index.",
    "baseline": "Show, import or replace baselines.",
    "labels": "Draw answers at random to be labeled, or show the progress.",
    "calibrate": "Compute floors for cosine scores, and compare scores with labels.",
    "score": "Score the rows of FILE, or estimate the cost.",
    "rescore": "Queue answers to be rescored, or rescore them on an engine.",
    "db": "Migrate, check or maintain the database.",
    "export": "Export exchanges, scores and feedback.",
    "import": "Restore a JSONL export, or add a data set to be scored.",
    "pull": "Store the past traces of Phoenix or MLflow as exchanges.",
    "archive": "Move closed days from the database to Parquet files.",
    "prune": "Erase old texts and delete old exchanges.",
    "forget": "Delete all exchanges of a user or session, or with an attribute.",
    "config": "Show the effective settings, active rules, channels and sinks.",
    "grafana": "Write a Grafana dashboard and Prometheus rules into FOLDER.",
    "completion": "Print the completion script for a shell.",
}
"""Short help of each command. Importing all commands to list them would take seconds."""
GC_THRESHOLD: Final = 500_000
"""Number of new container objects that trigger a garbage collection. A short command creates fewer."""
_PATHS: Final = {"forget": "prune:forget", "import": "import_"}
"""Module paths of commands that are not named after their module."""
_OTHER_NAMES: Final = {
    "--window": "--since",
    "--last": "--since",
    "--from": "--since",
    "--to": "--until",
    "--db": "--database",
    "--url": "--database",
    "--out": "--output",
}
"""Options, by the names that other tools and the dashboard use for them."""
_COMMANDS: Final = {
    name: f"germane.cli.commands.{_PATHS.get(name, name)}"
    for name in sorted(name for names in SECTIONS.values() for name in names)
}


@click.group(
    cls=LazyGroup,
    paths=_COMMANDS,
    sections=SECTIONS,
    summaries=SUMMARIES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="germane")
def group() -> None:
    """Monitor whether your RAG application answers the questions it is asked.

    Exit codes: 0 success, 1 error, 2 incorrect usage, 3 threshold violated, 4 doctor found an error, 5 not enough
    data or no database yet, 130 interrupted.
    """


def main() -> None:
    """Run the command line, and exit the process with the resulting exit code."""
    # Imports create 200,000 objects that are never freed. With the default of 700, garbage collection takes a fifth of
    # the time of a short command.
    gc.set_threshold(GC_THRESHOLD)
    if not sys.flags.safe_path:
        sys.path.insert(0, "")  # the `imports` setting may name modules in the current directory, as with python -m
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # the terminal's encoding may not support all characters in an answer
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    try:
        code = group.main(standalone_mode=False, complete_var=COMPLETION_VARIABLE)
        if sys.stdout is not None:  # None if the caller closed the stream
            sys.stdout.flush()
    except click.ClickException as error:
        (_renamed_option(error) or error).show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = EXIT_INTERRUPTED
    except GermaneError as error:
        for line in str(error).splitlines() or [""]:
            click.echo(f"germane: {line}", err=True)
        if "--json" in sys.argv:
            print_json({"error": str(error)})
        code = EXIT_NOT_ENOUGH_DATA if isinstance(error, DatabaseAbsent) else EXIT_ERROR
        if isinstance(error, UnknownScorer) and any(argument.startswith("--scorer") for argument in sys.argv):
            code = click.UsageError.exit_code
    except OSError as error:  # writing a file failed, for example because the disk is full
        click.echo(f"germane: cannot write {error.filename or 'the output'}: {error.strerror or error}", err=True)
        code = EXIT_ERROR
        # Otherwise, the interpreter would try to flush the buffered output again on exit.
        with contextlib.suppress(OSError, ValueError), Path(os.devnull).open("w", encoding="utf-8") as null:
            os.dup2(null.fileno(), sys.stdout.fileno())
    gc.freeze()  # otherwise, the interpreter would search all objects for garbage before it exits
    sys.exit(code if isinstance(code, int) else 0)


def _renamed_option(error: click.ClickException) -> click.UsageError | None:
    """Return an error that suggests the option's name in germane, or None. Click itself compares only the spelling."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return None
    name = _OTHER_NAMES.get(error.option_name)
    if not any(name in parameter.opts for parameter in error.ctx.command.params):
        return None
    return click.UsageError(f"No such option {error.option_name!r}. Did you mean {name!r}?", error.ctx)
