"""``germane grafana``: a Grafana dashboard and Prometheus rules for the metrics of ``/metrics``."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Final, Literal

import click

from germane.errors import GermaneError

FileKind = Literal["dashboard", "rules", "provider"]
FILE_NAMES: Final[dict[FileKind, str]] = {
    "dashboard": "dashboard.json",
    "rules": "rules.yaml",
    "provider": "provider.yaml",
}
INSTRUCTIONS: Final[dict[FileKind, str]] = {
    "dashboard": "import it into Grafana, or provision it",
    "rules": "list it under rule_files of Prometheus",
    "provider": "copy it to Grafana's provisioning/dashboards, and set GERMANE_DASHBOARDS to this directory",
}


class FileModified(GermaneError):
    """A file exists with different content."""


@click.command("grafana")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), required=False)
@click.option("--print", "kind", type=click.Choice(list(FILE_NAMES)), help="Print one of the files instead.")
@click.option("--link", metavar="URL", help="URL of germane's dashboard. Panels then link to its routes.")
@click.option("--force", is_flag=True, help="Overwrite modified files.")
def command(folder: Path | None, kind: FileKind | None, link: str | None, force: bool) -> None:  # noqa: FBT001 - click passes it by name
    """Write a Grafana dashboard and Prometheus rules into FOLDER.

    They use the metrics of /metrics, which germane serve and germane worker --metrics provide.
    """
    if (folder is None) == (kind is None):
        raise click.UsageError("give either FOLDER or --print")
    if link is not None and not link.startswith(("http://", "https://")):
        raise click.UsageError(f"--link {link!r} is not an http:// or https:// URL")
    if kind is not None:
        click.echo(_render_file(kind, link), nl=False)
    if folder is None:
        return
    texts = {kind: _render_file(kind, link) for kind in FILE_NAMES}
    paths = {kind: folder / name for kind, name in FILE_NAMES.items()}
    modified = [path for kind, path in paths.items() if path.exists() and path.read_text("utf-8") != texts[kind]]
    if modified and not force:
        names = ", ".join(map(str, modified))
        raise FileModified(
            f"{names} already exists with other content; use another directory, or overwrite with --force"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for kind, path in paths.items():
        path.write_text(texts[kind], "utf-8")
        click.echo(f"{path}  {INSTRUCTIONS[kind]}")


def _render_file(kind: FileKind, link: str | None) -> str:
    if kind == "dashboard":
        from germane.cli.commands.grafana.dashboard import dashboard

        return json.dumps(dashboard(link), indent=2) + "\n"
    return files(__package__ or "").joinpath(FILE_NAMES[kind]).read_text("utf-8")
