"""The settings page matches the settings classes."""

from __future__ import annotations

import runpy
from pathlib import Path

from tests.cases import each

from germane.settings import Archive, Budget, Retention
from germane.settings.channels import TEMPLATE_FIELDS

DOCS = Path(__file__).parents[2] / "docs"


def test_the_settings_page_is_up_to_date() -> None:
    """docs/settings.md is identical to the output of docs/settings.py."""
    page = runpy.run_path(str(DOCS / "settings.py"))["page"]

    assert (DOCS / "settings.md").read_text(encoding="utf-8") == page()


@each("model", [Archive, Budget, Retention])
def test_the_settings_page_has_the_variables_of_each_table(model: type[Archive | Budget | Retention]) -> None:
    """Each field of a table in the file has an environment variable."""
    page = (DOCS / "settings.md").read_text(encoding="utf-8")

    for name in model.model_fields:
        assert f"`GERMANE_{model.__name__.upper()}__{name.upper()}`" in page


def test_the_settings_page_lists_the_placeholders_of_templates() -> None:
    """The description of ``template`` names each of them."""
    lines = (DOCS / "settings.md").read_text(encoding="utf-8").splitlines()
    (line,) = (line for line in lines if line.startswith("| `template` |"))

    assert [name for name in TEMPLATE_FIELDS if f"`{{{name}}}`" not in line] == []
