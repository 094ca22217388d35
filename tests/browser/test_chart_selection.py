"""Interactive charts: drag to zoom, and click a point to see its answers."""

from __future__ import annotations

import re
from datetime import datetime
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, expect
from tests.browser.servers import Site
from tests.dashboard.seeding import SEARCH

CHART = ".chart svg.wide"


def selected(page: Page) -> tuple[datetime, datetime]:
    """Return the time range in the URL."""
    query = parse_qs(urlsplit(page.url).query)
    first, last = (datetime.fromisoformat(query[name][0]) for name in ("since", "until"))
    return first, last


def test_dragging_over_a_chart_selects_its_range(one_page: Page, one_site: Site) -> None:
    """The selected range is the one under the pointer, and links to the route and its answers keep it."""
    box = one_page.locator(f"#trend-panel {CHART}").bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    one_page.mouse.move(box["x"] + box["width"] * 0.5, y)
    one_page.mouse.down()
    one_page.mouse.move(box["x"] + box["width"] * 0.6, y)
    expect(one_page.locator(f"#trend-panel {CHART} .selection")).to_have_count(1)
    one_page.mouse.move(box["x"] + box["width"] * 0.7, y)
    one_page.mouse.up()
    one_page.wait_for_url(re.compile("since="))
    first, last = selected(one_page)
    hours = (last - first).total_seconds() / 3600
    assert 30 < hours < 40  # a fifth of the chart, which shows a week plus margins

    one_page.locator("#routes a.small", has_text=SEARCH).click()
    expect(one_page.get_by_role("heading", level=1)).to_contain_text(SEARCH)
    assert selected(one_page) == (first, last)
    one_page.get_by_role("link", name="All answers from this route").click()
    expect(one_page.get_by_role("heading", level=1)).to_contain_text("Answers")
    assert selected(one_page) == (first, last)


def test_clicking_a_chart_point_opens_its_answers(one_page: Page, one_site: Site) -> None:
    """Pointer and keys open the answers with the point's time range, scorer, service and route."""
    one_page.goto(one_site.url(f"/r/{SEARCH}"))
    chart = one_page.locator(f"#scorer-1 {CHART}")
    chart.focus()
    one_page.keyboard.press("End")
    one_page.keyboard.press("ArrowLeft")
    one_page.keyboard.press("Enter")
    one_page.wait_for_url(re.compile("/answers"))
    by_key = one_page.url
    assert {"route": [SEARCH], "scorer": ["answer_relevancy"]}.items() <= parse_qs(urlsplit(by_key).query).items()
    assert set(one_page.locator("table.answers .route").all_inner_texts()) == {SEARCH}

    one_page.go_back()
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    x, y = chart.evaluate("svg => points(svg).at(-2).slice(2, 4)")
    scale = box["width"] / 1100
    one_page.mouse.click(box["x"] + x * scale, box["y"] + y * scale)
    one_page.wait_for_url(by_key)
