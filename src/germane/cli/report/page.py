"""A report as one file of HTML with its pictures: no script, and nothing in it asks for anything outside."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from markupsafe import Markup

from germane.cli import compared, covered, learned
from germane.cli.report.cells import CORRECTED, HEADINGS, cells
from germane.dashboard.charts import trend_figure
from germane.dashboard.rendering import environment, version
from germane.shown import tame

if TYPE_CHECKING:
    from germane.cli.report.found import Found
    from germane.cli.report.pictured import Pictured


def page(found: Found, pictured: Pictured) -> str:
    """Return the report; all of it is escaped but the pictures, which escape what they show."""
    missing = [*filter(None, map(covered.line, found.coverage)), *covered.undecided(found.left)]
    page = environment().get_template("report.html")
    text = page.render(
        style=_style(),
        version=version(),
        found=found,
        pictured=pictured,
        headings=HEADINGS,
        corrected=CORRECTED,
        rows=[cells(one, found.summaries) for one in found.summaries],
        charts=[(trend.title, trend_figure(trend)) for trend in pictured.trends],
        compared=compared,
        missing=[line.strip() for line in missing],
        learning=[learned.line(one, found.now) for one in found.learning],
        now=found.now,
        view=None,
        root="",
    )
    return tame(text)  # it may be printed


def _style() -> Markup:
    text = (files("germane.dashboard") / "static" / "style.css").read_text(encoding="utf-8")
    return Markup(text)  # noqa: S704 - our own file
