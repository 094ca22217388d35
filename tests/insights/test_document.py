"""Documents in Markdown and HTML."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from germane.insights.document import Document, DocumentTable, Section, mean_cells, to_html, to_markdown
from germane.statistics import Estimate

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


def test_the_mean_of_too_few_scores_is_hidden() -> None:
    """The table still says how many scores there are."""
    few = Estimate(n=19, mean=0.8, interval=(0.7, 0.9), deviation=0.1, low_share=0.0, noncommittal_share=0.0)

    assert mean_cells(few) == ("19", "-", "not enough data (need 20)", "-", "-")
    assert mean_cells(None) == ("0", "-", "not enough data (need 20)", "-", "-")
    assert mean_cells(replace(few, n=20)) == ("20", "0.800", "0.700 to 0.900", "0%", "0%")
    for mean, shown in ((1.0, "no refusal"), (0.96, "4% refusals"), (0.0, "refusal")):
        assert mean_cells(replace(few, n=20, mean=mean), scorer="noncommittal")[1] == shown
