"""The settings page matches the settings classes."""

from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_settings_page_is_up_to_date() -> None:
    """docs/settings.md is identical to the output of docs/settings.py."""
    page = runpy.run_path(str(DOCS / "settings.py"))["page"]

    assert (DOCS / "settings.md").read_text(encoding="utf-8") == page()
