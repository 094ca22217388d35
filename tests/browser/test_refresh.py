"""Automatic updates of an open page."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect
from tests.browser.servers import Site
from tests.browser.visitor import Visitor
from tests.dashboard.seeding import FINGERPRINTS, SEARCH, SERVICE

from germane.exchange import Exchange
from germane.score import Score, band_of
from germane.storage import SamplingDecision, TrackingStore

Visits = Callable[..., Visitor]
SOON = timedelta(milliseconds=500)
NEW = "Where do I read what is new?"
FIVE_TIMES = f"""() => new Promise((done) => {{
  let times = 0;
  const id = setInterval(() => ++times < 5 || (clearInterval(id), done()), {SOON / timedelta(milliseconds=1)});
}})"""
"""Waits for five timer intervals. Timers of equal length alternate, so at least four refreshes are due by the end."""


def write_answer(store: TrackingStore) -> None:
    """Write an exchange with the lowest score of all."""
    at, fingerprint = store.now() - timedelta(seconds=2), FINGERPRINTS["answer_relevancy"]
    who = {"id": "f" * 32, "trace_id": "f" * 32, "span_id": "f" * 16}
    given = Exchange(**who, service=SERVICE, route=SEARCH, question=NEW, answer="No.", started_at=at)
    score = Score(scorer="answer_relevancy", fingerprint=fingerprint, value=0.001, label=band_of(0.001))
    only = {"answer_relevancy": fingerprint}
    store.exchanges.add([given])
    store.sampling.assign_tasks([SamplingDecision(given.id, 1.0, "always")], only)
    claims = store.queue.claim_tasks("new", only, limit=100, lease=timedelta(hours=1))
    tasks = [task for claim in claims for task in claim.tasks if task.exchange_id == given.id]
    store.queue.complete_tasks("new", [(task, score) for task in tasks])
    store.queue.release_tasks("new")


@pytest.mark.parametrize("own", ["sqlite", "postgresql"], indirect=True)
def test_a_new_answer_appears_without_a_reload(own: Callable[..., Site], visitor: Visits) -> None:
    """The answer is listed among the worst answers and counted."""
    site = own(refresh=SOON)
    page = visitor(site).look(site.url("/?window=24h"))
    expect(page.locator("#worst")).not_to_contain_text(NEW)
    before = page.locator("#tiles").inner_text()
    write_answer(site.store)
    expect(page.locator("#worst")).to_contain_text(NEW)
    expect(page.get_by_role("contentinfo")).to_contain_text("last answer 2 s ago")
    expect(page.locator("#tiles")).not_to_have_text(before, use_inner_text=True)


def test_an_automatic_refresh_keeps_the_focus_and_the_scroll_position(
    own: Callable[..., Site], visitor: Visits
) -> None:
    """A panel with focus is not replaced, and no requests are sent while the drawer is open."""
    site = own(refresh=SOON)
    page = visitor(site).look(site.url())
    link = page.locator("#worst a[data-drawer]").first
    link.focus()
    page.evaluate("document.activeElement.dataset.mine = '1'")
    write_answer(site.store)
    expect(page.get_by_role("contentinfo")).to_contain_text("last answer 2 s ago")
    expect(page.locator("[data-mine]")).to_be_focused()
    link.click()
    expect(page.get_by_role("dialog", name="Answer")).to_be_visible()
    asked = _asked_from_now_on(page)
    page.evaluate(FIVE_TIMES)
    assert asked == []


def _asked_from_now_on(page: Page) -> list[str]:
    asked: list[str] = []
    page.on("request", lambda request: request.resource_type == "fetch" and asked.append(request.url))
    return asked


def test_an_unreachable_server_is_reported_on_the_page(own: Callable[..., Site], visitor: Visits) -> None:
    """The page stays visible with a note of its age, and updates when the server responds again."""
    site = own(refresh=SOON)
    one = visitor(site, refused=True)
    page = one.look(site.url())
    page.route("**/*", lambda route: route.fulfill(status=503))
    expect(page.get_by_text("Not refreshed since")).to_be_visible()
    expect(page.locator("#worst a[data-drawer]").first).to_be_visible()
    page.unroute_all()
    expect(page.get_by_text("Not refreshed since")).to_have_count(0)
