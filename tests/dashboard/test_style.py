"""The look: readable in both themes, light, and from nowhere else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import germane.dashboard

FOLDER = Path(germane.dashboard.__file__).parent
STYLE = (FOLDER / "static" / "style.css").read_text()
SCRIPT = (FOLDER / "static" / "germane.js").read_text()
TEMPLATES = sorted((FOLDER / "templates").glob("*.html"))
COLOURS = {
    name: (light, dark)
    for name, light, dark in re.findall(r"--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", STYLE)
}
TEXT, SHAPE = 4.5, 3.0
"""Contrast that WCAG 2.2 asks for at level AA: of text (1.4.3), and of what has to be told apart (1.4.11)."""
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


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour, in [0, 1] (WCAG 2.2)."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, from 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("over", "under", "least"), PAIRS)
def test_colours_can_be_told_apart(over: str, under: str, least: float, theme: int) -> None:
    """Text has a contrast of 4.5 on whatever it stands, lines and dots of 3, in both themes."""
    assert contrast(COLOURS[over][theme], COLOURS[under][theme]) >= least


def test_every_colour_has_two_values_and_one_name() -> None:
    """No rule names a colour of its own, so that none is forgotten in one of the themes."""
    rules = STYLE.split("}", 1)[1]
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b", rules)
    used = set(re.findall(r"var\(--([a-z-]+)\)", STYLE))
    assert used - {"gap", "round", "mono"} <= set(COLOURS)


def test_style_and_script_are_light() -> None:
    """The style sheet stays under 20 kB, the script under 16 kB: both are of our own."""
    assert len(STYLE.encode()) < 20_000
    assert len(SCRIPT.encode()) < 16_000


def test_nothing_is_fetched_from_elsewhere() -> None:
    """Style, script and templates name no address of another machine; the names of XML's languages are none."""
    for text in (STYLE, SCRIPT, *(one.read_text() for one in TEMPLATES)):
        found = set(re.findall(r"(?:https?:)?//[A-Za-z0-9.-]+\.[a-z]{2,}[^\s\"')]*", text))
        assert found <= {"http://www.w3.org/2000/svg"}
        assert "@import" not in text
        assert "url(" not in text


def test_templates_hold_no_style_and_no_script() -> None:
    """The policy of pages forbids both, and handlers in attributes; a report is a file by itself, with its style."""
    for one in [one for one in TEMPLATES if one.name != "report.html"]:
        text = one.read_text()
        assert not re.search(r"\sstyle=|<style|<script(?![^>]*\ssrc=)|\son[a-z]+=\"", text), one.name
        assert "javascript:" not in text


def test_only_charts_are_taken_as_they_are() -> None:
    """No template turns escaping off."""
    for one in TEMPLATES:
        text = one.read_text()
        assert "|safe" not in text.replace(" ", ""), one.name
        assert "autoescape" not in text, one.name


def test_the_script_writes_no_html() -> None:
    """What it shows of texts it sets as text; nothing is evaluated."""
    for one in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
        assert one not in SCRIPT


def test_those_who_want_no_motion_get_none() -> None:
    """Animations are off where the system asks for that; focus can be seen; there is a style for paper."""
    assert "prefers-reduced-motion: reduce" in STYLE
    assert ":focus-visible" in STYLE
    assert "@media print" in STYLE
