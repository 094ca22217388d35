"""The drawer steps through the list from which it was opened, and answers are labeled without leaving the list."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.browser.servers import Site
from tests.browser.visitor import Visitor
from tests.dashboard.seeding import SEARCH

Visits = Callable[..., Visitor]
LISTS = {
    "/": "#worst a[data-drawer]",
    f"/r/{SEARCH}": "#worst a[data-drawer]",
    "/alerts/{open}": "main a[data-drawer]",
    f"/answers?route={SEARCH}&sort=newest": "#list a[data-drawer]",
}
"""Pages with lists of answers, and their links."""


def ids(links: Locator) -> list[str]:
    """Return the ids of the linked answers, in order."""
    return [str(link.get_attribute("href")).split("?")[0].removeprefix("/a/") for link in links.all()]


@pytest.mark.parametrize("path", LISTS)
def test_the_next_link_follows_the_order_of_the_originating_list(one_page: Page, one_site: Site, path: str) -> None:
    """Links and keys move in both directions; closing the drawer focuses the last opened answer in the list."""
    one_page.goto(one_site.url(path))
    links = one_page.locator(LISTS[path])
    listed = ids(links)[:4]
    links.first.click()
    article = one_page.get_by_role("dialog", name="Answer").locator("article")
    expect(article).to_have_attribute("data-answer", listed[0])
    one_page.get_by_role("dialog", name="Answer").locator("a[rel=next]").click()
    expect(article).to_have_attribute("data-answer", listed[1])
    for answer in listed[2:]:
        one_page.keyboard.press("j")
        expect(article).to_have_attribute("data-answer", answer)
    one_page.keyboard.press("k")
    expect(article).to_have_attribute("data-answer", listed[2])
    one_page.keyboard.press("Escape")
    expect(one_page.get_by_role("dialog", name="Answer")).to_be_hidden()
    expect(links.nth(2)).to_be_focused()
    expect(one_page).to_have_url(one_site.url(path))


def test_answers_can_be_labeled_by_key_without_leaving_the_list(visitor: Visits, own: Callable[..., Site]) -> None:
    """y and n label the answer and go on to the next one; the labels are stored, and shown and counted in the list."""
    site = own()
    page = visitor(site).look(site.url(f"/answers?route={SEARCH}"))
    links = page.locator("#list a[data-drawer]")
    labels = {answer: len(_labels(site, answer)) for answer in ids(links)[:3]}
    links.first.click()
    drawer = page.get_by_role("dialog", name="Answer")
    for answer, key in zip(labels, "yny", strict=True):
        expect(drawer.locator("article")).to_have_attribute("data-answer", answer)
        page.keyboard.press(key)
        words = "addresses the question" if key == "y" else "does not address the question"
        expect(drawer.get_by_role("status").first).to_contain_text(f"Label stored: the previous answer {words}")
    expect(drawer.locator("article")).to_have_attribute("data-answer", ids(links)[3])
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(page).to_have_url(site.url(f"/answers?route={SEARCH}"))
    rows = page.locator("#list tbody tr")
    for row, mark in zip(rows.all()[:3], "✓✗✓", strict=True):
        expect(row.locator(".tag", has_text=re.compile("[✓✗]"))).to_contain_text(mark)
    for answer, count in labels.items():
        assert len(_labels(site, answer)) == count + 1


def _labels(site: Site, answer: str) -> list[float]:
    detail = site.store.answers.load_detail(answer)
    assert detail is not None
    return [label.score for label in detail.feedback]


def test_the_slash_key_opens_the_filter_from_every_page(one_page: Page, one_site: Site) -> None:
    """In the drawer, slash closes the drawer; on a page without a filter, it opens the list."""
    field = one_page.get_by_label("Question or answer contains")
    one_page.goto(one_site.url("/answers"))
    one_page.locator("#list a[data-drawer]").first.click()
    expect(one_page.get_by_role("dialog", name="Answer")).to_be_visible()
    one_page.keyboard.press("/")
    expect(one_page.get_by_role("dialog", name="Answer")).to_be_hidden()
    expect(field).to_be_focused()
    one_page.goto(one_site.url("/"))
    one_page.keyboard.press("/")
    expect(field).to_be_focused()


def test_keyboard_shortcuts_work_on_the_page_of_an_answer(one_page: Page, one_site: Site) -> None:
    """j opens the next answer of the list in the URL, and the question mark lists all keys, in the drawer too."""
    one_page.goto(one_site.url(f"/answers?route={SEARCH}"))
    first, second = ids(one_page.locator("#list a[data-drawer]"))[:2]
    one_page.goto(one_site.url(f"/a/{first}?route={SEARCH}"))
    one_page.keyboard.press("j")
    expect(one_page.locator("article")).to_have_attribute("data-answer", second)
    one_page.goto(one_site.url(f"/answers?route={SEARCH}"))
    one_page.locator("#list a[data-drawer]").first.click()
    expect(one_page.get_by_role("dialog", name="Answer")).to_be_visible()
    one_page.keyboard.press("?")
    keys = one_page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(keys).to_contain_text("y / n")
    expect(keys).to_contain_text("j / k")
