"""Reports as data, and renderers for Markdown and HTML.

All text in a document is plain text that may come from users. The renderers escape it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from germane import sanitize
from germane.score import MIN_SAMPLES, describe_value

if TYPE_CHECKING:
    from germane.statistics import Estimate

MAX_TEXT_LENGTH: Final = 1_000
"""Maximum length of a displayed paragraph, list item or cell, in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentTable:
    """A table with plain-text cells."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a document under a heading."""

    title: str
    paragraphs: Sequence[str] = ()
    table: DocumentTable | None = None
    items: Sequence[str] = ()
    """The items of a bulleted list."""
    figure: Markup | None = None
    """A figure as HTML. In Markdown, the table is shown instead; without a table, the figure is omitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A report that can be rendered as Markdown or HTML."""

    title: str
    summary: str = ""
    """The most important sentence, emphasized."""
    tone: str = ""
    """CSS class for the summary, such as ``bad``."""
    paragraphs: Sequence[str] = ()
    sections: Sequence[Section] = ()


NOT_MEASURED: Final = "not measured"
MEAN_HEADINGS: Final = ("n", "mean", "95% interval", "low", "refused")


def mean_cells(
    estimate: Estimate | None, *, scorer: str | None = None, min_samples: int = MIN_SAMPLES
) -> tuple[str, ...]:
    """Return the table cells for a mean, one for each of :data:`MEAN_HEADINGS`.

    Means of fewer than ``min_samples`` scores are hidden.
    """
    if estimate is None or estimate.n < min_samples:
        n = 0 if estimate is None else estimate.n
        return str(n), "-", f"not enough data (need {min_samples})", "-", "-"
    interval = "-" if estimate.interval is None else f"{estimate.interval[0]:z.3f} to {estimate.interval[1]:z.3f}"
    if estimate.correlation is not None:
        interval += f", corrected (r={estimate.correlation:z.2f})"
    refused = NOT_MEASURED if estimate.noncommittal_share is None else f"{estimate.noncommittal_share:.0%}"
    return (
        str(estimate.n),
        describe_value(scorer or "", estimate.mean, 3),
        interval,
        f"{estimate.low_share:.0%}",
        refused,
    )


def to_markdown(document: Document) -> str:
    """Render a document as Markdown. Markup in captured text is escaped."""
    blocks = [f"# {document.title}"]
    if document.summary:
        blocks.append(f"**{_escape_markdown(document.summary)}**")
    blocks += map(_escape_markdown, document.paragraphs)
    for section in document.sections:
        if not (section.paragraphs or section.table or section.items):
            continue
        blocks.append(f"## {_escape_markdown(section.title)}")
        blocks += map(_escape_markdown, section.paragraphs)
        if section.table is not None:
            headings = section.table.headings
            lines = [headings, ["---"] * len(headings)]
            lines += [list(map(_escape_markdown, row)) for row in section.table.rows]
            blocks.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
        if section.items:
            blocks.append("\n".join(f"- {_escape_markdown(item)}" for item in section.items))
    return "\n\n".join(blocks) + "\n"


def _escape_markdown(text: str) -> str:
    return sanitize.markdown(text, MAX_TEXT_LENGTH)


def to_html(document: Document, *, style: str = "") -> str:
    """Render a document as one HTML file without scripts, links or external resources.

    ``style`` is CSS to use instead of the default style.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("germane.insights"), autoescape=True, trim_blocks=True, undefined=StrictUndefined
    )
    environment.filters["line"] = partial(sanitize.line, width=MAX_TEXT_LENGTH)
    return environment.get_template("document.html").render(document=document, style=style)
