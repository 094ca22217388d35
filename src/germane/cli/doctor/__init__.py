"""``germane doctor``: what keeps answers from being captured and scored, and how to mend it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import click

from germane.cli.doctor.examination import examine
from germane.cli.doctor.finding import Finding, code, show
from germane.cli.output import as_json, database, print_json


@click.command("doctor")
@click.option("--import", "modules", multiple=True, metavar="MODULE", help="Import your application's handlers first.")
@click.option("--offline", is_flag=True, help="Ask neither the judge nor the embedder.")
@database
@as_json
@click.pass_context
def command(
    context: click.Context,
    modules: tuple[str, ...],
    offline: bool,  # noqa: FBT001 - click passes it by name
    database: str | None,
    as_json: bool,  # noqa: FBT001
) -> None:
    """Name what is wrong, and how to mend it."""
    sys.path.insert(0, str(Path.cwd()))
    findings = [finding for module in modules for finding in _imported(module)]
    findings += examine(database, offline=offline)
    if as_json:
        print_json({"findings": [finding.as_dict() for finding in findings]})
    else:
        show(findings)
    context.exit(code(findings))


def _imported(module: str) -> list[Finding]:
    """Import handlers; what else goes wrong in a module is its author's to read, with the traceback."""
    try:
        importlib.import_module(module)
    except ImportError as error:
        fix = "run this in your application's folder and environment, or correct the name"
        return [Finding("import", "fault", f"{module} cannot be imported: {error}", fix)]
    return []
