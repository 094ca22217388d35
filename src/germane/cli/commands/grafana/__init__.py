"""``germane grafana``: a dashboard and rules over the gauges of ``/metrics``."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Final, Literal

import click

from germane.errors import GermaneError

Part = Literal["dashboard", "rules", "provider"]
NAMES: Final[dict[Part, str]] = {
    "dashboard": "dashboard.json",
    "rules": "rules.yaml",
    "provider": "provider.yaml",
}
TOLD: Final[dict[Part, str]] = {
    "dashboard": "for Grafana: import it, or have it provisioned",
    "rules": "for Prometheus: name it under rule_files",
    "provider": "for Grafana: to its provisioning/dashboards, with GERMANE_DASHBOARDS naming this folder",
}


class FileThere(GermaneError):
    """A file that is there says something else, which somebody may have written."""


@click.command("grafana")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), required=False)
@click.option("--print", "part", type=click.Choice(list(NAMES)), help="Print one of the files instead.")
@click.option("--link", metavar="URL", help="Address of germane's own pages, to which routes then lead.")
@click.option("--force", is_flag=True, help="Write also over files that were changed.")
def command(folder: Path | None, part: Part | None, link: str | None, force: bool) -> None:  # noqa: FBT001 - click passes it by name
    """Write a Grafana dashboard and Prometheus rules into FOLDER.

    They ask for the gauges that /metrics of germane serve and germane worker --metrics shows.
    """
    if (folder is None) == (part is None):
        raise click.UsageError("name either a folder to write into, or one of the files with --print")
    if link is not None and not link.startswith(("http://", "https://")):
        raise click.UsageError(f"--link {link!r} is no address that begins with http:// or https://")
    if part is not None:
        click.echo(_text(part, link), nl=False)
    if folder is not None:
        _write(folder, link, force=force)


def _text(part: Part, link: str | None) -> str:
    if part == "dashboard":
        from germane.cli.commands.grafana.dashboard import dashboard

        return json.dumps(dashboard(link), indent=2) + "\n"
    return files(__package__ or "").joinpath(NAMES[part]).read_text("utf-8")


def _write(folder: Path, link: str | None, *, force: bool) -> None:
    texts = {folder / name: _text(part, link) for part, name in NAMES.items()}
    changed = [path for path, text in texts.items() if path.exists() and path.read_text("utf-8") != text]
    if changed and not force:
        names = ", ".join(map(str, changed))
        raise FileThere(f"{names} says something else: write into another folder, or over it with --force")
    folder.mkdir(parents=True, exist_ok=True)
    for (path, text), told in zip(texts.items(), TOLD.values(), strict=True):
        path.write_text(text, "utf-8")
        click.echo(f"{path}  {told}")
