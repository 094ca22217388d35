"""The dashboard without JavaScript."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.browser.servers import SCREENS, Site
from tests.browser.visitor import NARROW, Visitor
from tests.dashboard.seeding import FINGERPRINTS, NOW, SEARCH, SERVICE

from germane.exchange import Exchange, new_exchange_id
from germane.storage import SamplingDecision

Visits = Callable[..., Visitor]


@pytest.fixture
def visit(visitor: Visits) -> Visits:
    """Open a browser profile that runs no scripts."""
    return lambda site, **options: visitor(site, java_script_enabled=False, **options)


def test_every_screen_opens_without_javascript(visit: Visits, one_site: Site) -> None:
    """Every screen has a heading, and every chart has a table."""
    page = visit(one_site, viewport=NARROW).page()
    for path in SCREENS:
        page.goto(one_site.url(path))
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
    page.goto(one_site.url())
    page.locator("#trend-panel summary").first.click()
    expect(page.locator("#trend-panel tbody tr").first).to_be_visible()


def test_links_and_filters_work_without_javascript(visit: Visits, site: Site) -> None:
    """Links lead from the verdict to the route and to an answer, and the form filters the list."""
    page = visit(site).look(site.url())
    page.locator("#worst").get_by_role("link").first.click()
    expect(page).to_have_url(re.compile("/a/[0-9a-f]+\\?window=24h$"))
    expect(page.get_by_role("heading", name="Question")).to_be_visible()
    route = page.locator(".score-head").get_by_role("link")
    name = route.inner_text()
    route.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(name)
    page.goto(site.url("/answers"))
    page.get_by_label("Route").select_option(SEARCH)
    page.get_by_role("button", name="Apply", exact=True).last.click()
    expect(page).to_have_url(re.compile("route=docs-search"))
    page.goto(site.url())
    page.get_by_role("combobox", name="Scorer").select_option("faithfulness")
    page.get_by_role("button", name="Apply", exact=True).click()
    expect(page).to_have_url(re.compile("scorer=faithfulness"))


def test_comparing_versions_and_saving_views_work_without_javascript(visit: Visits, own: Callable[..., Site]) -> None:
    """The forms swap the two sides, save the comparison under a name, and delete it."""
    site = own()
    page = visit(site).look(site.url())
    page.locator("#verdict").get_by_role("link", name="prompt versions").click()
    expect(page.get_by_role("status")).to_contain_text("Relevancy is worse with prompt version 7")
    page.get_by_label("Old prompt version").select_option("7")
    page.get_by_label("New prompt version").select_option("6")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("status")).to_contain_text("Relevancy is better with prompt version 6")
    page.locator("#questions").get_by_role("link").first.click()
    expect(page.get_by_role("heading", name="Answers to one question")).to_be_visible()
    page.get_by_role("link", name="Save view").click()
    page.get_by_label("Name", exact=True).fill("Versions 7 and 6")
    page.get_by_role("button", name="Save").click()
    page.goto(site.url())
    page.get_by_role("navigation", name="Saved views").get_by_role("link", name="Versions 7 and 6").click()
    expect(page.get_by_role("heading", name="Answers to one question")).to_be_visible()
    page.goto(site.url("/views"))
    page.get_by_role("button", name="Delete Versions 7 and 6").click()
    expect(page.get_by_text("No saved views yet.")).to_be_visible()


@pytest.mark.parametrize("scripts", [True, False])
def test_a_long_list_on_the_worker_page_is_folded_on_a_phone(
    visitor: Visits, own: Callable[..., Site], overflow_of: Callable[[Page], Any], scripts: bool
) -> None:
    """With 40 routes, the page stays as short as with ten; the fold opens without JavaScript and shows every route."""
    site = own()
    address = site.url("/worker?window=24h")
    page = visitor(site, viewport=NARROW, has_touch=True, java_script_enabled=scripts).look(address)
    short = page.evaluate("document.scrollingElement.scrollHeight")
    names = [f"shop-{number:02}" for number in range(40)]
    at = NOW - timedelta(hours=2)
    given = {"trace_id": "1" * 32, "span_id": "1" * 16, "service": SERVICE, "question": "How?", "answer": "So."}
    exchanges = [Exchange(id=new_exchange_id(), route=name, started_at=at, **given) for name in names]
    site.store.exchanges.add(exchanges)
    chosen = [SamplingDecision(one.id, 1.0, "sampled") for one in exchanges]
    site.store.sampling.assign_tasks(chosen, {"answer_relevancy": FINGERPRINTS["answer_relevancy"]})
    page.goto(address)
    coverage = page.locator("#coverage")
    assert page.evaluate("document.scrollingElement.scrollHeight") < short + 4 * NARROW["height"]
    coverage.locator("summary").tap()
    for name in names:
        expect(coverage.get_by_role("link", name=name, exact=True)).to_be_visible()
    assert overflow_of(page) <= 0


def test_the_theme_can_be_switched_without_javascript(visit: Visits, one_site: Site) -> None:
    """A form switches the theme and returns to the page."""
    page = visit(one_site, color_scheme="light").look(one_site.url("/answers?sort=newest"))
    for chosen in ("light", "dark"):
        page.get_by_role("button", name="Theme").click()
        expect(page).to_have_url(one_site.url("/answers?sort=newest"))
        expect(page.locator("html")).to_have_attribute("data-theme", chosen)


def test_all_actions_work_without_javascript(visit: Visits, own: Callable[..., Site]) -> None:
    """Every action is a form; accepting a baseline is confirmed on a separate page."""
    site = own()
    answer = site.worst()
    page = visit(site).look(site.url(f"/a/{answer}"))
    page.get_by_role("button", name="Yes, it does").click()
    expect(page.get_by_role("status").first).to_contain_text("Label stored: the previous answer addresses")
    expect(page.locator(f'article[data-answer="{answer}"]')).to_have_count(0)
    page.get_by_role("link", name="Worse").click()
    expect(page.locator("article")).to_have_attribute("data-answer", answer)
    page.get_by_role("button", name="Score again").click()
    expect(page.get_by_role("status").first).to_contain_text("Queued for scoring")
    page.goto(site.url("/alerts/{open}"))
    page.get_by_role("button", name="Acknowledge").click()
    page.get_by_role("button", name="Silence").click()
    expect(page.get_by_role("status").first).to_contain_text("Silenced until")
    page.get_by_role("link", name="Accept as new baseline").click()
    page.get_by_role("button", name="Accept as new baseline").click()
    expect(page).to_have_url(site.url("/alerts/{open}?done=accept"))
    sheet, alert = site.store.answers.load_detail(answer), site.store.alerts.get(site.seeded.open_alert)
    assert sheet is not None
    assert alert is not None
    assert len(sheet.feedback) == len(site.store.alerts.list_silences()) == 1
    assert alert.acknowledged_at is not None
    assert "accepted" in {one.reason for one in site.store.baselines.list_versions()}
