"""Each screen opens in a real browser, under its policy, asking nobody else for anything."""

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


def test_every_screen_opens_without_trouble(visitor: Visits, site: Site) -> None:
    """No error in the console, nothing that the policy forbids, no request to elsewhere; a title and one heading."""
    page = visitor(site).page()
    for path in SCREENS:
        page.goto(site.url(path))
        assert page.title().endswith("germane")
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        expect(page.get_by_role("contentinfo")).to_contain_text("last answer 25 s ago")


def test_nothing_is_wider_than_a_phone(visitor: Visits, one_site: Site, width_of: Callable[[Page], Any]) -> None:
    """At 390 px no screen scrolls sideways, and each part of the navigation can be reached."""
    page = visitor(one_site, viewport=NARROW, has_touch=True).page()
    for path in SCREENS:
        page.goto(one_site.url(path))
        assert width_of(page) <= 0, path
    for name in NAVIGATION:
        page.get_by_role("navigation", name="Main").get_by_role("link", name=name).tap()
        expect(page.get_by_role("link", name=name).first).to_have_attribute("aria-current", "page")


def test_what_is_not_there_is_explained(visitor: Visits, one_site: Site, width_of: Callable[[Page], Any]) -> None:
    """By a page with a cause, a next step and a way back, and with the same policy."""
    page = visitor(one_site, viewport=NARROW, refused=True).page()
    for path, status in REFUSALS.items():
        response = page.goto(one_site.url(path))
        assert response is not None
        assert response.status == status
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        assert width_of(page) <= 0, path
    page.get_by_role("link", name="Go to the overview").click()
    expect(page).to_have_url(one_site.url())


def test_a_window_is_chosen_with_one_click_and_stays(page: Page, site: Site) -> None:
    """It is in the address, marked in the picker, and goes along to the other screens and back."""
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


def test_another_metric_is_shown_as_soon_as_it_is_chosen(page: Page) -> None:
    """The choice is a form that sends itself, and the address says what is shown."""
    page.get_by_role("combobox", name="Scorer").select_option("faithfulness")
    page.wait_for_url("**/?*scorer=faithfulness*")
    expect(page.get_by_role("heading", name="Faithfulness", exact=True)).to_be_visible()


def test_times_are_the_visitors(visitor: Visits, one_site: Site) -> None:
    """The first page is asked for once more with the visitor's zone; moments say exactly when, on hover."""
    one = visitor(one_site, timezone_id="Asia/Tokyo")
    one.context.clear_cookies()
    page = one.page()
    page.goto(one_site.url(), wait_until="commit")
    expect(page.get_by_role("contentinfo")).to_contain_text("times in JST")
    assert "JST" in (page.locator("#worst time").first.get_attribute("title") or "")


def test_who_begins_sees_the_first_steps(visitor: Visits, alone: Any, tmp_path_factory: Any) -> None:
    """Over an empty database each address of the first page is that of the first steps."""
    file = migrated_file(tmp_path_factory.getbasetemp())
    with served(f"sqlite:///{file}", Seeded(NOW, []), Clock(NOW)) as empty:
        page = visitor(empty).look(empty.url())
        expect(page.get_by_role("heading", level=1)).to_have_text("First steps")
        expect(page.get_by_text("0 exchanges received")).to_be_visible()
        for path in ("/answers", "/alerts", "/worker"):
            page.goto(empty.url(path))
            expect(page.get_by_role("heading", level=1)).to_have_count(1)


def test_a_token_lets_in_and_out(visitor: Visits, own: Callable[..., Site]) -> None:
    """Without it every address leads to the entrance, a wrong one is refused, and the right one leads on."""
    site = own(token=TOKEN)
    page = visitor(site, refused=True).look(site.url("/answers?sort=newest"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.get_by_label("Token").fill("a guess")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_have_text("The token is wrong.")
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(site.url("/answers?sort=newest"))
    page.goto(site.url("/login"))
    page.get_by_role("button", name="Sign out").click()
    page.goto(site.url("/worker"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_are_as_the_system_has_it(visitor: Visits, one_site: Site, scheme: Any) -> None:
    """Until the visitor chooses."""
    page = visitor(one_site, color_scheme=scheme).look(one_site.url())
    assert _is_dark(page) == (scheme == "dark")


def test_the_switch_stays(visitor: Visits, one_site: Site) -> None:
    """Light, dark and as the system has it, in turn, at once and after loading anew."""
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
