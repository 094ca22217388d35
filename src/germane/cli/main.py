"""The command line's entry: its verbs, and how errors end it."""

from __future__ import annotations

import io
import logging
import sys
from importlib import import_module
from typing import Any

import click

from germane.cli.output import print_json
from germane.errors import GermaneError

_VERBS = {
    "alerts": "germane.cli.alerts",
    "baseline": "germane.cli.baseline",
    "calibrate": "germane.cli.calibrate",
    "db": "germane.cli.database",
    "demo": "germane.cli.demo",
    "doctor": "germane.cli.doctor",
    "estimate": "germane.cli.estimate",
    "export": "germane.cli.export",
    "forget": "germane.cli.forget",
    "grafana": "germane.cli.grafana",
    "import": "germane.cli.importing",
    "mark": "germane.cli.mark",
    "prune": "germane.cli.prune",
    "report": "germane.cli.report",
    "score": "germane.cli.score",
    "worker": "germane.cli.worker",
    "worst": "germane.cli.worst",
}


class _Verbs(click.Group):
    """Imports a verb when it is called, so that ``--help`` and the light ones stay quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the signature is the base class's
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        module = _VERBS.get(cmd_name)
        command: Any = None if module is None else import_module(module).command
        return command  # type: ignore[no-any-return]  # each module's command is one


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="germane")
def _germane() -> None:
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
        code = _germane.main(standalone_mode=False)
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
