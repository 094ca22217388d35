"""The command line's entry: its verbs, and how errors end it."""

from __future__ import annotations

import io
import logging
import sys
from typing import Final

import click

from germane.cli.core.lazy_group import Sections, Verbs
from germane.cli.core.output import COMPLETE, print_json
from germane.errors import GermaneError

_VERBS = {
    "alerts": "germane.cli.commands.alerts",
    "baseline": "germane.cli.commands.baseline",
    "calibrate": "germane.cli.commands.calibrate",
    "completion": "germane.cli.commands.completion",
    "config": "germane.cli.commands.config",
    "db": "germane.cli.commands.db",
    "demo": "germane.cli.commands.demo",
    "doctor": "germane.cli.commands.doctor",
    "estimate": "germane.cli.commands.estimate",
    "export": "germane.cli.commands.export",
    "forget": "germane.cli.commands.forget",
    "grafana": "germane.cli.commands.grafana",
    "import": "germane.cli.commands.import_",
    "init": "germane.cli.commands.init",
    "mark": "germane.cli.commands.mark",
    "prune": "germane.cli.commands.prune",
    "report": "germane.cli.commands.report",
    "rescore": "germane.cli.commands.rescore",
    "score": "germane.cli.commands.score",
    "serve": "germane.cli.commands.serve",
    "trend": "germane.cli.commands.trend",
    "worker": "germane.cli.commands.worker",
    "worst": "germane.cli.commands.worst",
}


SECTIONS: Final[Sections] = {
    "Begin": ("init", "doctor", "demo"),
    "Run": ("serve", "worker"),
    "Look": ("report", "trend", "worst", "alerts"),
    "Explain": ("mark", "baseline", "calibrate", "estimate"),
    "Score by hand": ("score", "rescore"),
    "Look after data": ("db", "export", "import", "prune", "forget"),
    "Set up": ("config", "grafana", "completion"),
}
"""Verbs by what they are for."""


@click.group(
    cls=Verbs,
    places=_VERBS,
    sections=SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="germane")
def group() -> None:
    """Watch whether your RAG application still answers the question.

    Exit codes: 0 fine, 1 error, 2 usage, 3 threshold broken, 4 the doctor found a fault, 5 not enough data,
    130 interrupted.
    """


def main() -> None:
    """Run the command line and exit with its code."""
    if not sys.flags.safe_path:
        sys.path.insert(0, "")  # the setting imports names modules of the current folder, as under python -m
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # answers hold characters that a terminal may not know
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    try:
        code = group.main(standalone_mode=False, complete_var=COMPLETE)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = 130
    except GermaneError as error:
        click.echo(f"germane: {error}", err=True)
        if "--json" in sys.argv:
            print_json({"error": str(error)})
        code = 1
    sys.exit(code if isinstance(code, int) else 0)
