"""Documents in Markdown and HTML."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from germane.insights.document import Document, DocumentTable, Section, to_html, to_markdown

TABLE = DocumentTable(headings=["route"], rows=[["table cell"]])
DOCUMENT = Document(
    title="The title",
    summary="The summary",
    paragraphs=["A paragraph"],
    sections=[
        Section(title="First section", paragraphs=["Its paragraph"], table=TABLE),
        Section(title="Second section", items=["an item", "another item"]),
    ],
)


@pytest.mark.parametrize("render", [to_markdown, to_html])
def test_every_part_of_a_document_is_rendered_in_order(render: Callable[[Document], str]) -> None:
    """The summary, all paragraphs, tables and lists appear, each once and after its heading."""
    text = render(DOCUMENT).partition("<body>")[2] or render(DOCUMENT)

    parts = ["The title", "The summary", "A paragraph", "First section", "Its paragraph", "route", "table cell"]
    parts += ["Second section", "an item", "another item"]
    assert re.findall("|".join(map(re.escape, parts)), text) == parts


@pytest.mark.parametrize("render", [to_markdown, to_html])
def test_missing_parts_of_a_document_leave_no_empty_elements(render: Callable[[Document], str]) -> None:
    """A document with only a title has no empty emphasis, list or table."""
    text = render(Document(title="The title")).partition("<body>")[2] or render(Document(title="The title"))

    assert re.findall(r"\*\*|<b>|<ul|<table|\n- |\| ", text) == []
    assert "The title" in text


def test_a_section_with_nothing_but_a_figure_is_omitted_in_markdown() -> None:
    """Markdown cannot show figures, so that its heading would stand alone."""
    document = Document(title="The title", sections=[Section(title="A chart")])

    assert to_markdown(document) == "# The title\n"
