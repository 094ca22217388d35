"""The command-line page matches the commands."""

from __future__ import annotations

import runpy
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
IS_LOCKED = f"click=={version('click')} " in (ROOT / "requirements.lock").read_text(encoding="utf-8")


@pytest.mark.skipif(not IS_LOCKED, reason="other versions of click describe the same options differently")
def test_the_command_line_page_is_up_to_date() -> None:
    """docs/command-line.md is identical to the output of docs/commands.py."""
    page = runpy.run_path(str(DOCS / "commands.py"))["page"]

    assert (DOCS / "command-line.md").read_text(encoding="utf-8") == page()
