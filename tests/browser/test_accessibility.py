"""Accessibility of every screen, checked by axe-core."""

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
    """A tab that can load axe-core, which the content security policy would otherwise forbid."""
    return visitor(one_site, bypass_csp=True).page()


def violations(page: Page, **options: Any) -> Sequence[str]:
    """Return the violations that axe-core finds: rule, impact and element."""
    found = AXE.run(page, **options).response["violations"]
    return [
        f"{page.url}: {one['id']} ({one['impact']}): {[node['html'][:160] for node in one['nodes'][:3]]}"
        for one in found
    ]


@pytest.mark.parametrize("path", [path for path in SCREENS if "?state" not in path])
def test_screens_have_no_accessibility_violations(page: Page, one_site: Site, path: str) -> None:
    """Each screen is checked in the light theme and at phone width, and its colors in the dark theme."""
    page.goto(one_site.url(path))
    found = [*violations(page)]
    page.emulate_media(color_scheme="dark")
    found += violations(page, options=CONTRAST)
    page.set_viewport_size(NARROW)
    page.reload()
    found += violations(page)
    assert found == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_drawer_and_help_have_no_accessibility_violations(page: Page, one_site: Site, scheme: Any) -> None:
    """The drawer is checked with its details open."""
    page.emulate_media(color_scheme=scheme)
    page.goto(one_site.url("/answers"))
    page.locator("table.answers a[data-drawer]").nth(40).click()
    expect(page.get_by_role("dialog", name="Answer")).to_be_visible()
    page.get_by_role("dialog").locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    found = [*violations(page)]
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    assert [*found, *violations(page)] == []


def test_charts_with_open_tables_have_no_accessibility_violations(page: Page, one_site: Site) -> None:
    """The crosshair is visible too."""
    found: list[str] = []
    for path in ("/", "/r/docs-search", "/worker", "/alerts"):
        page.goto(one_site.url(path))
        page.locator("main details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
        for chart in page.locator("main svg[data-plot]:visible").all()[:1]:
            chart.focus()
            page.keyboard.press("ArrowLeft")
        found += violations(page, context="main")
    assert found == []


def test_login_and_error_pages_have_no_accessibility_violations(
    visitor: Visits, own: Callable[..., Site], request: Any
) -> None:
    """The login form and the page for unknown paths are checked."""
    site = own(token=TOKEN)
    page = visitor(site, bypass_csp=True, refused=True).look(site.url("/login"))
    found = [*violations(page)]
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Sign in").click()
    page.goto(site.url("/nowhere"))
    assert [*found, *violations(page)] == []
