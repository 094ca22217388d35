"""The pages about the command line match the commands."""

from __future__ import annotations

import re
import runpy

from tests.docs.blocks import DOCS

from germane.cli.app import SECTIONS, SUMMARIES


def test_the_command_line_page_lists_every_command() -> None:
    """They are in the order of ``germane --help``, with the same summaries."""
    text = (DOCS / "command-line.md").read_text(encoding="utf-8")
    listed = re.findall(r"(?m)^\|[^|]*\| `germane (\w+)` \| (.+) \|$", text)

    assert listed == [(name, SUMMARIES[name]) for names in SECTIONS.values() for name in names]


def test_every_command_has_a_page_with_its_options_and_schemas() -> None:
    """The site's pages are generated from the commands. Each schema of an output is linked once."""
    pages = runpy.run_path(str(DOCS / "commands.py"))["pages"]()
    linked = re.findall(r"\(\.\./schemas/cli/([\w-]+)\.json\)", "".join(pages.values()))

    assert set(pages) == set(SUMMARIES)
    assert "| `--fail-under MEAN` |" in pages["report"]
    assert "## germane alerts show\n" in pages["alerts"]
    assert sorted(linked) == sorted({path.stem for path in (DOCS / "schemas" / "cli").glob("*.json")} - {"error"})
