"""Charts at the widths of a phone and a laptop, in both themes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pytest
from playwright.sync_api import Page
from tests.browser.servers import Site
from tests.browser.visitor import Visitor
from tests.dashboard.seeding import SEARCH

Visits = Callable[..., Visitor]
PATHS = (
    "/",
    "/?window=90d",
    f"/r/{SEARCH}",
    f"/r/{SEARCH}?window=24h",
    "/alerts/{open}",
    f"/compare?route={SEARCH}",
    "/compare?by=prompt_version",
    "/usage",
)
CUT_OFF = """() => [...document.querySelectorAll("main svg text")].filter((text) => {
  const [inner, outer] = [text.getBoundingClientRect(), text.ownerSVGElement.getBoundingClientRect()];
  if (!outer.width) return false;
  return inner.left < outer.left - 1 || inner.right > outer.right + 1 || inner.top < outer.top - 1
    || inner.bottom > outer.bottom + 1 || inner.left < 0 || inner.right > innerWidth;
}).map((text) => text.textContent)"""
INVISIBLE = """() => [...document.querySelectorAll("main .chart svg :is(.line, .dots, .side, .level)")].filter(
  (one) => one.ownerSVGElement.getBoundingClientRect().width && ["none", "rgba(0, 0, 0, 0)"].every(
    (nothing) => [getComputedStyle(one).fill, getComputedStyle(one).stroke].every((paint) => paint === nothing))
).length"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_no_label_of_a_chart_is_cut_off(
    visitor: Visits,
    one_site: Site,
    overflow_of: Callable[[Page], Any],
    theme: Literal["light", "dark"],
    width: int,
) -> None:
    """Every text of every chart is inside its picture and inside the window, and the page does not scroll sideways."""
    page = visitor(one_site).page()
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 900})
    for path in PATHS:
        page.goto(one_site.url(path))
        assert page.locator("main .chart svg text:visible").count() > 0, path
        assert page.evaluate(CUT_OFF) == [], path
        assert page.evaluate(INVISIBLE) == 0, path
        assert overflow_of(page) <= 0, path
