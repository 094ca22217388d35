"""Navigation from the verdict to an answer, with links and the back button."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, expect
from tests.browser.servers import Site
from tests.browser.visitor import Visitor
from tests.dashboard.seeding import SEARCH

Visits = Callable[..., Visitor]


def test_the_verdict_links_to_the_dropped_route(page: Page, site: Site) -> None:
    """The route page links to its answers."""
    verdict = page.locator("#verdict")
    expect(verdict).to_contain_text(SEARCH)
    verdict.get_by_role("link", name=SEARCH, exact=True).first.click()
    expect(page).to_have_url(re.compile(rf"/r/{SEARCH}"))
    expect(page.get_by_role("heading", level=1)).to_contain_text(SEARCH)
    page.get_by_role("link", name="All answers from this route").click()
    expect(page.get_by_label("Route")).to_have_value(SEARCH)
    expect(page.locator("table.answers tbody tr")).to_have_count(50)
    assert set(page.locator("table.answers .route").all_inner_texts()) == {SEARCH}


def test_the_small_chart_of_a_route_links_to_the_route(one_page: Page) -> None:
    """The chart of the dropped route comes first and is marked."""
    first = one_page.locator("#routes a.small").first
    expect(first).to_have_class(re.compile(r"\bbad\b"))
    first.click()
    expect(one_page.get_by_role("heading", level=1)).to_contain_text(SEARCH)
    one_page.locator("#worst").get_by_role("link").first.click()
    expect(one_page.get_by_role("dialog", name="Answer")).to_be_visible()


def test_a_worst_answer_opens_in_a_drawer(one_page: Page, one_site: Site) -> None:
    """The URL changes to the URL of the answer; Escape closes the drawer and restores the focus."""
    link = one_page.locator("#worst a[data-drawer]").first
    address = link.get_attribute("href")
    link.click()
    expect(one_page.get_by_role("dialog", name="Answer")).to_be_visible()
    expect(one_page).to_have_url(one_site.address + str(address))
    one_page.keyboard.press("Escape")
    expect(one_page.get_by_role("dialog", name="Answer")).to_be_hidden()
    expect(one_page).to_have_url(one_site.url())
    expect(link).to_be_focused()


def test_the_drawer_opens_at_the_top_and_shows_the_position_in_the_list(one_page: Page, one_site: Site) -> None:
    """Neither the position of an answer that was read before nor the focus scrolls the next one."""
    one_page.goto(one_site.url("/answers"))
    drawer = one_page.get_by_role("dialog", name="Answer")
    for index in (1, 2):
        one_page.locator("#list a[data-drawer]").nth(index).click()
        expect(drawer).to_be_visible()
        assert drawer.evaluate("one => one.scrollTop") == 0
        expect(drawer).to_contain_text(re.compile(rf"\b{index + 1} of (more than )?[\d,]+ by lowest score"))
        drawer.evaluate("one => one.scrollTo(0, 1e6)")
        assert drawer.evaluate("one => one.scrollTop") > 0
        one_page.keyboard.press("Escape")
        expect(drawer).to_be_hidden()


def test_the_back_button_closes_the_drawer_and_the_forward_button_reopens_it(one_page: Page, one_site: Site) -> None:
    """The list keeps its scroll position."""
    one_page.locator("#worst a[data-drawer]").nth(2).click()
    expect(one_page.get_by_role("dialog", name="Answer")).to_be_visible()
    one_page.go_back()
    expect(one_page.get_by_role("dialog", name="Answer")).to_be_hidden()
    expect(one_page).to_have_url(one_site.url())
    one_page.go_forward()
    expect(one_page.get_by_role("dialog", name="Answer")).to_be_visible()


def test_the_url_of_the_drawer_opens_as_a_page(visitor: Visits, one_page: Page, one_site: Site) -> None:
    """The page shows the same score, question, answer and explanation as the drawer."""
    one_page.locator("#worst a[data-drawer]").last.click()
    shown = one_page.get_by_role("dialog", name="Answer")
    texts = shown.locator(".said").inner_text(), shown.locator(".score-head").inner_text()
    other = visitor(one_site).look(one_page.url)
    assert (other.locator("main .said").inner_text(), other.locator("main .score-head").inner_text()) == texts
    one_page.reload()
    expect(one_page.get_by_role("heading", level=1)).to_be_visible()
    assert one_page.locator("main .said").inner_text() == texts[0]


def test_next_and_previous_in_the_drawer_step_through_the_worst_answers(one_page: Page, one_site: Site) -> None:
    """The close button returns to the starting page in one step."""
    one_page.goto(one_site.url("/answers?route=docs-search"))
    links = one_page.locator("table.answers a[data-drawer]")
    addresses = [str(link.get_attribute("href")).split("?")[0] for link in links.all()[:3]]
    links.first.click()
    shown = one_page.get_by_role("dialog", name="Answer")
    for address in addresses[1:]:
        shown.locator("a[rel=next]").click()
        expect(one_page).to_have_url(re.compile(re.escape(address)))
        expect(shown.locator("article")).to_have_attribute("data-answer", address.removeprefix("/a/"))
    shown.locator("a[rel=prev]").click()
    expect(one_page).to_have_url(re.compile(re.escape(addresses[1])))
    shown.get_by_role("button", name="Close").click()
    expect(one_page).to_have_url(one_site.url("/answers?route=docs-search"))
    expect(shown).to_be_hidden()


def test_the_url_of_a_list_contains_the_filter(page: Page, site: Site) -> None:
    """The filter survives a reload, and the back button removes it."""
    page.goto(site.url("/answers"))
    page.get_by_label("Route").select_option(SEARCH)
    page.get_by_label("Below").fill("0.5")
    page.get_by_label("Question or answer contains").fill("the")
    page.get_by_role("button", name="Apply", exact=True).last.click()
    page.wait_for_url("**/answers?*route=docs-search*")
    shown = page.locator("table.answers a[data-drawer]").evaluate_all("all => all.map((one) => one.href)")
    assert "below=0.5" in page.url
    assert "text=the" in page.url
    assert shown
    page.reload()
    expect(page.get_by_label("Route")).to_have_value(SEARCH)
    expect(page.get_by_label("Below")).to_have_value("0.5")
    assert page.locator("table.answers a[data-drawer]").evaluate_all("all => all.map((one) => one.href)") == shown
    page.go_back()
    expect(page).to_have_url(site.url("/answers"))
    expect(page.get_by_label("Route")).to_have_value("")


def test_changing_the_window_keeps_the_filter_and_the_order(one_page: Page, one_site: Site) -> None:
    """Nothing else in the URL changes."""
    picker = one_page.get_by_role("group", name="Window")
    one_page.goto(one_site.url("/answers?route=docs-search&below=0.5&sort=newest"))
    picker.get_by_role("link", name="24 h").click()
    expect(one_page).to_have_url(re.compile("window=24h"))
    asked = {"window": ["24h"], "route": ["docs-search"], "below": ["0.5"], "sort": ["newest"]}
    assert parse_qs(urlsplit(one_page.url).query) == asked
    one_page.goto(one_site.url("/alerts/backtest?replay=drop&route=docs-search"))
    picker.get_by_role("link", name="24 h").click()
    expect(one_page.get_by_role("heading", name="Backtest", exact=True)).to_be_visible()


def test_column_headings_sort_in_both_directions(page: Page, site: Site) -> None:
    """The list can start with the lowest, highest or newest answers; the order is in the URL."""
    page.goto(site.url("/answers"))
    low = _values(page)
    expect(page.get_by_role("columnheader", name="Score")).to_have_attribute("aria-sort", "ascending")
    page.get_by_role("columnheader", name="Score").get_by_role("link").click()
    expect(page).to_have_url(re.compile("sort=highest"))
    expect(page.get_by_role("columnheader", name="Score")).to_have_attribute("aria-sort", "descending")
    high = _values(page)
    page.get_by_role("columnheader", name="Age").get_by_role("link").click()
    expect(page).to_have_url(re.compile("sort=newest"))
    ages = page.locator("table.answers time").evaluate_all("all => all.map((one) => one.dateTime)")
    assert low == sorted(low)
    assert high == sorted(high, reverse=True)
    assert low[0] < high[-1]
    assert ages == sorted(ages, reverse=True)


def _values(page: Page) -> list[float]:
    shown = page.locator("table.answers td.score").all_inner_texts()
    return [0.0 if "refusal" in text else float(text.split()[0]) for text in shown]


def test_the_pages_of_a_list_are_linked(page: Page, site: Site) -> None:
    """No answer appears on two pages, the second page can be reloaded, and First returns to the start."""
    page.goto(site.url("/answers?sort=newest"))
    links = page.locator("table.answers a[data-drawer]")
    first = links.evaluate_all("all => all.map((one) => one.pathname)")
    pages = page.get_by_role("navigation", name="Pages")
    pages.get_by_role("link", name="Next").click()
    expect(page).to_have_url(re.compile("after="))
    page.reload()
    second = links.evaluate_all("all => all.map((one) => one.pathname)")
    assert len(set(first) | set(second)) == 100
    pages.get_by_role("link", name="First").click()
    expect(page).not_to_have_url(re.compile("after="))
    expect(links).to_have_count(len(first))  # the browser shows the beginning of the page while it loads the rest
    assert links.evaluate_all("all => all.map((one) => one.pathname)") == first


def test_an_alert_links_to_its_answers_and_its_route(page: Page, site: Site) -> None:
    """The count in the header leads to the alert, and the alert to one of its answers."""
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Alerts").click()
    page.locator("#open").get_by_role("link").first.click()
    expect(page).to_have_url(site.url("/alerts/{open}"))
    page.locator("main a[data-drawer]").first.click()
    expect(page.get_by_role("dialog", name="Answer")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page).to_have_url(site.url("/alerts/{open}"))
    page.get_by_role("main").get_by_role("link", name=SEARCH, exact=True).first.click()
    expect(page).to_have_url(re.compile(rf"/r/{SEARCH}"))
