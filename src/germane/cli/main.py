"""The command line's entry: its verbs, and how errors end it."""

from __future__ import annotations

import io
import logging
import sys
from typing import Final

import click

from germane.cli.output import COMPLETE, print_json
from germane.cli.verbs import Sections, Verbs
from germane.errors import GermaneError

_VERBS = {
    "alerts": "germane.cli.alerts",
    "baseline": "germane.cli.baseline",
    "calibrate": "germane.cli.calibrate",
    "completion": "germane.cli.completion",
    "config": "germane.cli.config",
    "db": "germane.cli.database",
    "demo": "germane.cli.demo",
    "doctor": "germane.cli.doctor",
    "estimate": "germane.cli.estimate",
    "export": "germane.cli.export",
    "forget": "germane.cli.forget",
    "grafana": "germane.cli.grafana",
    "import": "germane.cli.importing",
    "init": "germane.cli.init",
    "mark": "germane.cli.mark",
    "prune": "germane.cli.prune",
    "report": "germane.cli.report",
    "rescore": "germane.cli.rescore",
    "score": "germane.cli.score",
    "serve": "germane.cli.serve",
    "trend": "germane.cli.trend",
    "worker": "germane.cli.worker",
    "worst": "germane.cli.worst",
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
