"""The style sheet and script: contrast, size and external resources."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

from starlette.testclient import TestClient
from tests.cases import each

import germane.dashboard

FOLDER = Path(germane.dashboard.__file__).parent
STYLE = (FOLDER / "static" / "style.css").read_text()
SCRIPT = (FOLDER / "static" / "germane.js").read_text()
TEMPLATES = sorted((FOLDER / "templates").glob("*.html"))
COLOURS = {
    name: (light, dark)
    for name, light, dark in re.findall(r"--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", STYLE)
}
WORD = r"[\w-]+|[^\w\s]"
TEXT, SHAPE = 4.5, 3.0
"""Minimum contrast ratios in WCAG 2.2, level AA: for text (1.4.3) and for graphics (1.4.11)."""
PAIRS = [
    *((one, under, TEXT) for one in ("text", "quiet", "accent", "bad", "warn", "good") for under in ("page", "panel")),
    *((one, "sunk", TEXT) for one in ("text", "quiet", "accent", "bad", "warn", "good")),
    *((one, f"{one}-soft", TEXT) for one in ("bad", "warn", "good")),
    *(("text", f"{one}-soft", TEXT) for one in ("bad", "warn", "good")),
    *(("accent", f"{one}-soft", TEXT) for one in ("bad", "warn", "good")),
    ("on-accent", "accent", TEXT),
    ("panel", "bad", TEXT),
    *((one, "panel", SHAPE) for one in ("accent", "edge", "bad")),
    *((one, under, SHAPE) for one in ("accent", "quiet", "bad") for under in ("band", "band-thin")),
]


@each("template", TEMPLATES)
def test_dates_are_written_with_the_directives_of_every_platform(template: Path) -> None:
    """A day without a leading zero has none, so Windows would answer with an error."""
    assert re.findall(r"[^{]%-[a-zA-Z]", template.read_text(encoding="utf-8")) == []


def luminance(colour: str) -> float:
    """Return the relative luminance of a color, in [0, 1] (WCAG 2.2)."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colors, from 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@each("theme", [0, 1])
@each(("over", "under", "least"), PAIRS)
def test_colors_of_text_have_enough_contrast(over: str, under: str, least: float, theme: int) -> None:
    """The ratio is at least 4.5 for text and 3 for lines and dots, on every background, in both themes."""
    assert contrast(COLOURS[over][theme], COLOURS[under][theme]) >= least


def test_every_color_is_a_variable_with_a_light_and_a_dark_value() -> None:
    """Rules contain no literal colors, so every color is defined in both themes."""
    rules = STYLE.split("}", 1)[1]
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b", rules)
    used = set(re.findall(r"var\(--([a-z-]+)\)", STYLE))
    assert used - {"gap", "round", "mono", "mix"} <= set(COLOURS)


def test_the_stylesheet_and_the_script_are_small() -> None:
    """The style sheet is under 23 kB, the script under 26.8 kB, and their total compressed size under 15.1 kB."""
    assert len(STYLE.encode()) < 23_000
    assert len(SCRIPT.encode()) < 26_800
    assert sum(len(gzip.compress(text.encode(), 5)) for text in (STYLE, SCRIPT)) < 15_100


def test_style_and_script_are_served_without_comments_and_indentation(page: TestClient) -> None:
    """Nothing else is lost, and pages load a seventh less. No text of the script spans lines."""
    served = [page.get(f"/static/{name}").text for name in ("style.css", "germane.js")]
    for text, whole in zip(served, (STYLE, SCRIPT), strict=True):
        kept = re.sub(r"(?m)^\s*(?://|/\*).*$|\s// .*$", "", whole)
        assert re.findall(WORD, text) == re.findall(WORD, kept)
    assert sum(map(len, served)) < 0.87 * (len(STYLE) + len(SCRIPT))
    assert [line for line in SCRIPT.splitlines() if line.count("`") % 2] == []


def test_pages_load_no_external_resources() -> None:
    """Style sheet, script and templates contain no external URLs, except XML namespaces."""
    for text in (STYLE, SCRIPT, *(one.read_text() for one in TEMPLATES)):
        found = set(re.findall(r"(?:https?:)?//[A-Za-z0-9.-]+\.[a-z]{2,}[^\s\"')]*", text))
        assert found <= {"http://www.w3.org/2000/svg"}
        assert "@import" not in text
        assert "url(" not in text


def test_templates_have_no_inline_style_or_script() -> None:
    """The content security policy forbids inline styles, scripts and event handlers."""
    for one in [one for one in TEMPLATES if one.name != "report.html"]:
        text = one.read_text()
        assert not re.search(r"\sstyle=|<style|<script(?![^>]*\ssrc=)|\son[a-z]+=\"", text), one.name
        assert "javascript:" not in text


def test_templates_never_disable_escaping() -> None:
    """Only charts are inserted as markup."""
    for one in TEMPLATES:
        text = one.read_text()
        assert "|safe" not in text.replace(" ", ""), one.name
        assert "autoescape" not in text, one.name


def test_the_script_never_writes_html() -> None:
    """The script only sets text, and evaluates no code."""
    for one in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
        assert one not in SCRIPT


def test_reduced_motion_focus_outlines_and_printing_are_supported() -> None:
    """Animations follow the system's setting, focus is visible, and there is a print style."""
    assert "prefers-reduced-motion: reduce" in STYLE
    assert ":focus-visible" in STYLE
    assert "@media print" in STYLE


def test_templates_show_names_in_words() -> None:
    """Reasons and other names are never shown with underscores: ``words`` is the one place that replaces them."""
    for one in TEMPLATES:
        text = one.read_text()
        assert 'replace("_"' not in text, one.name
        shown = re.findall(r"\{\{[^{}]*reason\.value[^{}]*\}\}", text)
        assert [each for each in shown if "|words" not in each] == [], one.name


def test_sentences_in_templates_are_separated_by_spaces() -> None:
    """A line break after a block is removed, so the block that follows a sentence begins with the space."""
    for one in TEMPLATES:
        joined = re.findall(r"[a-z)][.!?]\{%-? endif %\}\n *(?:[A-Z{0-9].*)", one.read_text())
        assert [each for each in joined if not re.search(r"\n *\{%- ", each)] == [], one.name
