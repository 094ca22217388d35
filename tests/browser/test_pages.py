"""Every screen in a real browser under its content security policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.browser.servers import REFUSALS, SCREENS, Site, served
from tests.browser.visitor import NARROW, Visitor
from tests.conftest import migrated_file
from tests.dashboard.http_server import TOKEN
from tests.dashboard.seeding import NOW, Seeded

from germane.testing import Clock

Visits = Callable[..., Visitor]
NAVIGATION = ("Overview", "Answers", "Alerts", "Worker")


@pytest.mark.parametrize("site", ["sqlite", "postgresql"], indirect=True)
def test_every_screen_opens_without_errors_or_foreign_requests(visitor: Visits, site: Site) -> None:
    """There are no console errors, policy violations or foreign requests; each screen has one title and one heading."""
    page = visitor(site).page()
    for path in SCREENS:
        page.goto(site.url(path))
        assert page.title().endswith("germane")
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        expect(page.get_by_role("contentinfo")).to_contain_text("last answer 25 s ago")


def test_every_screen_fits_a_phone(visitor: Visits, one_site: Site, overflow_of: Callable[[Page], Any]) -> None:
    """At 390 px nothing scrolls sideways, and the navigation is reachable."""
    page = visitor(one_site, viewport=NARROW, has_touch=True).page()
    for path in SCREENS:
        page.goto(one_site.url(path))
        assert overflow_of(page) <= 0, path
    for name in NAVIGATION:
        page.get_by_role("navigation", name="Main").get_by_role("link", name=name).tap()
        expect(page.get_by_role("link", name=name).first).to_have_attribute("aria-current", "page")


@pytest.mark.parametrize("script", [True, False])
def test_the_grid_shows_a_phone_the_names_of_routes_and_the_newest_cells(
    visitor: Visits, one_site: Site, script: bool
) -> None:
    """The oldest cells are a swipe away."""
    page = visitor(one_site, viewport=NARROW, java_script_enabled=script).look(one_site.url("/?window=24h"))
    grid = page.get_by_role("region", name="Grid of routes by hour")

    route, newest = (grid.get_by_role(role).last.bounding_box() for role in ("rowheader", "columnheader"))

    assert route is not None
    assert newest is not None
    assert 0 <= route["x"] < route["x"] + route["width"] <= newest["x"]
    assert newest["x"] + newest["width"] <= NARROW["width"]


def test_an_unknown_path_shows_an_explanation(
    visitor: Visits, one_site: Site, overflow_of: Callable[[Page], Any]
) -> None:
    """The page shows a cause, a next step and a way back, under the same policy."""
    page = visitor(one_site, viewport=NARROW, refused=True).page()
    for path, status in REFUSALS.items():
        response = page.goto(one_site.url(path))
        assert response is not None
        assert response.status == status
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        assert overflow_of(page) <= 0, path
    page.get_by_role("link", name="Go to the overview").click()
    expect(page).to_have_url(one_site.url())


def test_the_selected_window_is_kept_across_screens(page: Page, site: Site) -> None:
    """The window is in the URL, marked in the picker, and kept across screens."""
    picker = page.get_by_role("group", name="Window")
    picker.get_by_role("link", name="24 h").click()
    expect(page).to_have_url(site.url("/?window=24h"))
    expect(picker.get_by_role("link", name="24 h")).to_have_attribute("aria-current", "true")
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Answers").click()
    expect(page).to_have_url(site.url("/answers?window=24h"))
    page.go_back()
    page.go_back()
    expect(page).to_have_url(site.url())
    expect(picker.get_by_role("link", name="7 d")).to_have_attribute("aria-current", "true")


def test_the_scores_of_the_selected_scorer_are_shown(page: Page) -> None:
    """The form submits itself, and the URL contains the selected scorer."""
    page.get_by_role("combobox", name="Scorer").select_option("faithfulness")
    page.wait_for_url("**/?*scorer=faithfulness*")
    expect(page.get_by_role("heading", name="Faithfulness", exact=True)).to_be_visible()


def test_times_are_shown_in_the_time_zone_of_the_visitor(visitor: Visits, one_site: Site) -> None:
    """The first page reloads once to apply the time zone; tooltips show exact times."""
    one = visitor(one_site, timezone_id="Asia/Tokyo")
    one.context.clear_cookies()
    page = one.page()
    page.goto(one_site.url(), wait_until="commit")
    expect(page.get_by_role("contentinfo")).to_contain_text("times in JST")
    assert "JST" in (page.locator("#worst time").first.get_attribute("title") or "")


def test_the_dashboard_shows_the_first_steps_for_an_empty_database(
    visitor: Visits, alone: Any, tmp_path_factory: Any
) -> None:
    """Every URL of the overview shows them."""
    file = migrated_file(tmp_path_factory.getbasetemp())
    with served(f"sqlite:///{file}", Seeded(NOW, []), Clock(NOW)) as empty:
        page = visitor(empty).look(empty.url())
        expect(page.get_by_role("heading", level=1)).to_have_text("First steps")
        expect(page.get_by_text("0 exchanges received")).to_be_visible()
        for path in ("/answers", "/alerts", "/worker"):
            page.goto(empty.url(path))
            expect(page.get_by_role("heading", level=1)).to_have_count(1)


def test_visitors_can_sign_in_with_the_token_and_sign_out(visitor: Visits, own: Callable[..., Site]) -> None:
    """Every URL redirects to the login form. An invalid token is rejected; the correct one opens the requested page."""
    site = own(token=TOKEN)
    page = visitor(site, refused=True).look(site.url("/answers?sort=newest"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.get_by_label("Token").fill("a guess")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_have_text("The token is invalid.")
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(site.url("/answers?sort=newest"))
    page.goto(site.url("/login"))
    page.get_by_role("button", name="Sign out").click()
    page.goto(site.url("/worker"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system_setting(visitor: Visits, one_site: Site, scheme: Any) -> None:
    """This holds until the visitor chooses a theme."""
    page = visitor(one_site, color_scheme=scheme).look(one_site.url())
    assert _is_dark(page) == (scheme == "dark")


def test_the_selected_theme_is_remembered(visitor: Visits, one_site: Site) -> None:
    """The switch cycles through light, dark and system; the theme changes immediately and survives a reload."""
    page = visitor(one_site, color_scheme="light").look(one_site.url("/answers?sort=newest"))
    for chosen, is_dark in (("light", False), ("dark", True), ("auto", False)):
        page.get_by_role("button", name="Theme").click()
        expect(page.get_by_role("button", name=f"Theme: {chosen}.")).to_be_visible()
        assert _is_dark(page) == is_dark
        page.reload()
        assert _is_dark(page) == is_dark
        expect(page).to_have_url(one_site.url("/answers?sort=newest"))


def _is_dark(page: Page) -> bool:
    shown = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(int(part) for part in shown.removeprefix("rgb(").removesuffix(")").split(",")) < 3 * 128
