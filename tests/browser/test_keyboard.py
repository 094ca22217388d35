"""Keyboard access to every function."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.browser.servers import Site
from tests.browser.visitor import Visitor
from tests.dashboard.seeding import SEARCH

Visits = Callable[..., Visitor]


@pytest.fixture
def page(one_page: Page) -> Page:
    """A tab on the overview; keyboard access does not depend on the database."""
    return one_page


def focused(page: Page) -> Any:
    """Return the text of the focused element."""
    return page.evaluate("document.activeElement.innerText.trim().split('\\n')[0]")


def test_the_first_tab_stop_is_a_link_that_skips_the_header(page: Page) -> None:
    """The link is visible when focused, and the next tab stop is in the content."""
    page.keyboard.press("Tab")
    link = page.get_by_role("link", name="Skip to content")
    expect(link).to_be_focused()
    expect(link).to_be_in_viewport()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")


def test_the_tab_order_follows_the_layout_of_the_page(page: Page) -> None:
    """The order is brand, navigation, tools and content, each with a visible focus."""
    stops = []
    for _ in range(6):
        page.keyboard.press("Tab")
        stops.append(focused(page))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert stops[:4] == ["Skip to content", "germane", "Overview", "Answers"]
    assert [text.split()[0] for text in stops[4:]] == ["Labels", "Alerts"]


def test_the_drawer_traps_the_focus_and_restores_it_when_closed(page: Page) -> None:
    """Tab never leaves the drawer, and Escape returns to the link."""
    link = page.locator("#worst a[data-drawer]").nth(1)
    link.focus()
    page.keyboard.press("Enter")
    drawer = page.get_by_role("dialog", name="Answer")
    expect(drawer.get_by_role("button", name="Close")).to_be_focused()
    stops = drawer.locator("a[href], button, input:not([type=hidden]), summary").count()
    for _ in range(stops + 3):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement === document.body || !!document.activeElement.closest('dialog')")
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(link).to_be_focused()


def test_arrow_keys_announce_chart_points_to_screen_readers(page: Page) -> None:
    """The crosshair announces mean, interval and n of each table row."""
    figure = page.locator("#trend-panel .chart").first
    chart = figure.locator("svg[data-plot]").first
    figure.locator("details").evaluate("one => { one.open = true; }")
    rows = [_numbers(row) for row in figure.locator("tbody tr").all()]
    chart.focus()
    seen = []
    for _ in rows:
        page.keyboard.press("ArrowRight")
        readout = figure.locator(".readout").inner_text()
        expect(page.get_by_role("status").last).to_have_text(re.compile(re.escape(readout.split("\n")[1])))
        seen.append(re.findall(r"mean (\S+), 95% interval (\S+) to (\S+)\nn=(\d+)", readout)[0])
    assert [tuple(row) for row in reversed(rows)] == seen
    assert re.search(rf"\n{SEARCH}: 0\.\d\d, n=\d+", figure.locator(".readout").inner_text())
    page.keyboard.press("Home")
    first = figure.locator(".readout").inner_text()
    page.keyboard.press("End")
    assert figure.locator(".readout").inner_text() != first
    page.keyboard.press("Tab")
    expect(figure.locator(".readout")).to_have_count(0)


def _numbers(row: Locator) -> list[str]:
    """Return mean, low, high and n of a row."""
    mean, interval, n, _ = row.locator("td").all_inner_texts()
    return [mean, *interval.split("\u2013"), n.split()[0]]


def test_keyboard_shortcuts_move_through_lists_and_screens(page: Page, one_site: Site) -> None:
    """The keys are j and k, slash, g and a letter, and the question mark, which lists all shortcuts."""
    links = page.locator("main a[data-drawer]")
    page.keyboard.press("j")
    expect(links.first).to_be_focused()
    page.keyboard.press("j")
    expect(links.nth(1)).to_be_focused()
    page.keyboard.press("k")
    expect(links.first).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keyboard")).to_have_count(0)
    page.keyboard.press("g")
    page.keyboard.press("a")
    expect(page).to_have_url(one_site.url("/answers"))
    page.keyboard.press("/")
    expect(page.get_by_label("Question or answer contains")).to_be_focused()
    page.keyboard.type("gj?")
    expect(page.get_by_label("Question or answer contains")).to_have_value("gj?")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_hovering_over_a_chart_shows_its_values(page: Page) -> None:
    """The values disappear when the pointer leaves the chart."""
    figure = page.locator("#trend-panel .chart").first
    figure.locator("svg[data-plot]").first.hover(position={"x": 300, "y": 60})
    expect(figure.locator(".readout")).to_contain_text("95% interval")
    page.get_by_role("heading", level=1).hover()
    expect(figure.locator(".readout")).to_have_count(0)
