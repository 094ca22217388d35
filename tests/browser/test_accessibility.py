"""What axe-core finds on each screen: nothing, in light and dark, wide and narrow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from tests.browser.servers import SCREENS, Site
from tests.browser.visitor import NARROW, Visitor
from tests.dashboard.http_server import TOKEN

Visits = Callable[..., Visitor]
AXE = Axe()
CONTRAST = {"runOnly": ["color-contrast"], "resultTypes": ["violations"]}


@pytest.fixture
def page(visitor: Visits, one_site: Site) -> Page:
    """A tab into which axe-core can be put, which the policy of the pages would forbid."""
    return visitor(one_site, bypass_csp=True).page()


def faults(page: Page, **options: Any) -> Sequence[str]:
    """Return what axe-core finds, by rule, weight and place."""
    found = AXE.run(page, **options).response["violations"]
    return [
        f"{page.url}: {one['id']} ({one['impact']}): {[node['html'][:160] for node in one['nodes'][:3]]}"
        for one in found
    ]


@pytest.mark.parametrize("path", [path for path in SCREENS if "?state" not in path])
def test_no_screen_has_a_fault(page: Page, one_site: Site, path: str) -> None:
    """In light and, for what colours decide, in dark; then as narrow as a phone."""
    page.goto(one_site.url(path))
    found = [*faults(page)]
    page.emulate_media(color_scheme="dark")
    found += faults(page, options=CONTRAST)
    page.set_viewport_size(NARROW)
    page.reload()
    found += faults(page)
    assert found == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_drawer_has_none(page: Page, one_site: Site, scheme: Any) -> None:
    """With an answer in it, and with its details open; nor has the help."""
    page.emulate_media(color_scheme=scheme)
    page.goto(one_site.url("/answers"))
    page.locator("table.answers a[data-drawer]").nth(40).click()
    expect(page.get_by_role("dialog", name="Answer")).to_be_visible()
    page.get_by_role("dialog").locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    found = [*faults(page)]
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    assert [*found, *faults(page)] == []


def test_charts_with_their_tables_open_have_none(page: Page, one_site: Site) -> None:
    """With the crosshair on."""
    found: list[str] = []
    for path in ("/", "/r/docs-search", "/worker", "/alerts"):
        page.goto(one_site.url(path))
        page.locator("main details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
        for chart in page.locator("main svg[data-points]:visible").all()[:1]:
            chart.focus()
            page.keyboard.press("ArrowLeft")
        found += faults(page, context="main")
    assert found == []


def test_what_stands_for_a_page_has_none(visitor: Visits, own: Callable[..., Site], request: Any) -> None:
    """The entrance, and the page that says that there is none."""
    site = own(token=TOKEN)
    page = visitor(site, bypass_csp=True, refused=True).look(site.url("/login"))
    found = [*faults(page)]
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Sign in").click()
    page.goto(site.url("/nowhere"))
    assert [*found, *faults(page)] == []
