"""Hostile questions, answers and names in a real browser."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import DATABASES
from tests.browser.servers import Site, served
from tests.browser.visitor import NARROW, WIDE, Visitor
from tests.conftest import PostgreSQL, migrated_file
from tests.dashboard.hostile import ROUTES, TEXTS, write_hostile_exchanges
from tests.dashboard.http_server import NOW
from tests.dashboard.seeding import Seeded

from germane.insights import session_path
from germane.storage import TrackingStore
from germane.testing import Clock

Visits = Callable[..., Visitor]
_PLACES = "all => all.map((one) => one.href)"
on_one = pytest.mark.parametrize("site", ["sqlite"], indirect=True)
"""Restricts a test to SQLite, because it is slow and does not depend on the type of database."""


@pytest.fixture(scope="module", params=DATABASES)
def site(request: pytest.FixtureRequest, alone: Path, tmp_path_factory: Any) -> Iterator[Site]:
    """A served database with hostile data only."""
    clock = Clock(NOW)
    url = _empty(request, alone, tmp_path_factory)
    with closing(TrackingStore(url, clock=clock)) as store:
        store.migrate()
        seeded = Seeded(clock.now, write_hostile_exchanges(store, clock.now))
    with served(url, seeded, clock) as running:
        yield running


def _empty(request: pytest.FixtureRequest, folder: Path, tmp_path_factory: Any) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{shutil.copy(migrated_file(tmp_path_factory.getbasetemp()), folder / 'hostile.db')}"
    server: PostgreSQL = request.getfixturevalue("postgresql")
    return server.url(server.create())


@on_one
def test_hostile_text_is_inert_on_every_screen(visitor: Visits, site: Site, overflow_of: Callable[[Page], Any]) -> None:
    """Hostile text runs no script, adds no external link, and never makes a page wider than the screen."""
    page = visitor(site).page()
    answers = [f"/a/{one.id}" for one in site.seeded.exchanges]
    page.goto(site.url("/answers"))
    routes = page.locator("table.answers a.route").evaluate_all(_PLACES)
    stored = site.store.answers.get_exchanges([one.id for one in site.seeded.exchanges]).values()
    sessions = {session_path(one.session) for one in stored if one.session}
    others = ("/", "/answers?state=any&sort=newest", "/answers?group=question", "/alerts", "/worker")
    addresses = [site.address + path for path in (*others, *answers, *sessions)]
    assert sessions
    for address in (*addresses, *dict.fromkeys(routes)):
        page.goto(address)
        page.locator("main details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
        assert page.evaluate("window.__germane_was_here") is None, address
        assert page.title().endswith("germane"), address
        assert _elsewhere(page, site) == [], address
        for size in (NARROW, WIDE):
            page.set_viewport_size(size)
            assert overflow_of(page) <= 0, (address, size)


def _elsewhere(page: Page, site: Site) -> list[str]:
    found = page.locator("a, form").evaluate_all('all => all.map((one) => one.getAttribute("href") ?? one.action)')
    resolved = page.evaluate("all => all.map((one) => new URL(one ?? '', location.href).origin)", found)
    return [one for one, origin in zip(found, resolved, strict=True) if origin != site.address]


def test_hostile_text_is_inert_in_the_drawer(visitor: Visits, site: Site) -> None:
    """Every answer is opened, from the worst to the best."""
    page = visitor(site).look(site.url("/answers"))
    page.locator("table.answers a[data-drawer]").first.click()
    drawer = page.get_by_role("dialog", name="Answer")
    expect(drawer).to_be_visible()
    for _ in range(len(TEXTS) - 1):
        before = drawer.locator("article").get_attribute("data-answer")
        drawer.locator("a[rel=next]").click()
        expect(drawer.locator("article")).not_to_have_attribute("data-answer", str(before))
        assert page.evaluate("window.__germane_was_here") is None


@on_one
def test_hostile_text_is_shown_in_readable_form(visitor: Visits, site: Site) -> None:
    """Scripts are shown literally, and bidirectional controls affect only their own text."""
    page = visitor(site).page()
    script = next(one for one in site.seeded.exchanges if one.answer == TEXTS["script"])
    page.goto(site.url(f"/a/{script.id}"))
    expect(page.locator(".said")).to_contain_text(TEXTS["script"])
    for place in page.locator(".said .text").all():
        assert place.evaluate("one => getComputedStyle(one).unicodeBidi") == "isolate"


@on_one
def test_routes_with_hostile_names_link_to_their_pages(visitor: Visits, site: Site) -> None:
    """Links on the overview and in the list stay on this server."""
    page = visitor(site).page()
    for start, links in (("/", "#routes a.small, #routes a.route"), ("/answers", "table.answers a.route")):
        page.goto(site.url(start))
        page.locator("#routes details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
        found = dict.fromkeys(page.locator(links).evaluate_all(_PLACES))
        assert len(found) == len(ROUTES)
        for address in found:
            response = page.goto(address)
            assert response is not None
            assert (response.status, response.url.startswith(site.url("/r/"))) == (200, True), address
            expect(page.locator("#worst a[data-drawer]").first).to_be_attached()


def test_the_exported_csv_contains_no_formulas(visitor: Visits, site: Site) -> None:
    """Only numbers start with a character that a spreadsheet evaluates."""
    response = visitor(site).context.request.get(site.url("/answers.csv?state=any"))
    rows = list(csv.reader(io.StringIO(response.text(), newline="")))
    assert len(rows) == 1 + len(TEXTS)
    assert {len(row) for row in rows} == {len(rows[0])}
    assert [cell for row in rows for cell in row if cell[:1] in tuple("=+-@\t\r\n|") and not _is_number(cell)] == []
    assert any("HYPERLINK" in cell for row in rows for cell in row)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
