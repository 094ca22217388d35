"""Actions on pages, and their effect on pages and database."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import expect
from tests.browser.servers import Site
from tests.browser.visitor import Visitor

Visits = Callable[..., Visitor]
Sites = Callable[..., Site]


def test_a_second_label_replaces_the_first_and_the_count_is_updated(visitor: Visits, own: Sites) -> None:
    """The label is shown on the page, can be filtered by, and replaces the visitor's earlier label."""
    site = own()
    answer = site.worst()
    page = visitor(site).look(site.url(f"/a/{answer}"))
    page.get_by_label("Comment (optional)").fill("exactly what I asked for")
    page.get_by_role("button", name="Yes, it does").click()
    expect(page.get_by_role("status").first).to_have_text("Label stored: the previous answer addresses the question.")
    page.goto(site.url(f"/a/{answer}"))
    expect(page.locator("#people")).to_contain_text("exactly what I asked for")
    expect(page.locator("#people")).to_contain_text(
        re.compile(r"People disagree with this judge on \d+ of \d+ labeled")
    )
    sheet = site.store.answers.load_detail(answer)
    assert sheet is not None
    assert [(one.score, one.comment) for one in sheet.feedback] == [(1.0, "exactly what I asked for")]
    page.goto(site.url("/answers?labeled=yes&route=docs-search"))
    expect(page.locator(f'a[href*="{answer}"]')).to_have_count(1)


def test_submitting_a_label_in_the_drawer_opens_the_next_answer(visitor: Visits, own: Sites) -> None:
    """A link leads from the answer back to the list."""
    site = own()
    page = visitor(site).look(site.url("/answers?route=docs-search"))
    page.locator("table.answers a[data-drawer]").first.click()
    page.get_by_role("dialog", name="Answer").get_by_role("button", name="No, it does not").click()
    status = page.get_by_role("status").first
    expect(status).to_have_text("Label stored: the previous answer does not address the question.")
    page.get_by_role("link", name="Filtered answers").click()
    expect(page).to_have_url(site.url("/answers?route=docs-search"))


def test_the_rescore_button_queues_the_answer(visitor: Visits, own: Sites) -> None:
    """The page says that the current score stays until the new one is stored."""
    site = own()
    answer = site.worst()
    page = visitor(site).look(site.url(f"/a/{answer}"))
    page.get_by_role("button", name="Score again").click()
    expect(page.get_by_role("status").first).to_contain_text("The current score stays until the new one")
    expect(page.locator(".score-head")).to_contain_text("is being scored again")
    sheet = site.store.answers.load_detail(answer)
    assert sheet is not None
    assert {one.state for one in sheet.tasks} == {"pending"}


def test_an_alert_can_be_acknowledged_silenced_and_resolved(visitor: Visits, own: Sites) -> None:
    """The visitor's name is remembered, and each action is in the timeline."""
    site = own()
    id_ = site.seeded.open_alert
    page = visitor(site).look(site.url("/alerts/{open}"))
    page.get_by_label("Your name").first.fill("Ada")
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_role("status").first).to_contain_text("Acknowledged by Ada")
    expect(page.get_by_label("Your name").first).to_have_value("Ada")
    alert = site.store.alerts.get(id_)
    assert alert is not None
    assert alert.acknowledged_by == "Ada"
    page.locator("select[name=for]").select_option("1h")
    page.get_by_label("Comment").fill("known: the index is being rebuilt")
    page.get_by_role("button", name="Silence").click()
    expect(page.get_by_role("status").first).to_contain_text("Silenced until")
    (silence,) = site.store.alerts.list_silences()
    assert (silence.comment, silence.created_by) == ("known: the index is being rebuilt", "Ada")
    page.get_by_role("button", name="Resolve").click()
    expect(page.get_by_role("status").first).to_contain_text("Resolved")
    expect(page.get_by_role("button", name="Resolve")).to_have_count(0)
    assert not [one for one in site.store.alerts.list_open() if one.id == id_]
    page.goto(site.url("/alerts"))
    page.get_by_role("button", name="End now").click()
    expect(page.locator("#silences")).to_contain_text("No silences.")
    assert site.store.alerts.list_silences() == []


def test_accepting_a_drop_needs_two_clicks(visitor: Visits, own: Sites) -> None:
    """The first click shows the consequences; the second makes the scores since the onset the new baseline."""
    site = own()
    before = {one.id for one in site.store.baselines.list_versions()}
    page = visitor(site).look(site.url("/alerts/{open}"))
    page.get_by_role("link", name="Accept as new baseline").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Accept this drop as the new baseline?")
    assert {one.id for one in site.store.baselines.list_versions()} == before
    page.get_by_role("button", name="Accept as new baseline").click()
    expect(page).to_have_url(site.url("/alerts/{open}?done=accept"))
    added = [one for one in site.store.baselines.list_versions() if one.id not in before]
    assert [one.reason for one in added] == ["accepted"]


def test_failed_answers_can_be_rescored(visitor: Visits, own: Sites) -> None:
    """A button on the worker page queues all failures of one kind, and the page shows their number."""
    site = own()
    page = visitor(site).look(site.url("/worker"))
    page.locator("main").get_by_role("button", name="Retry now").first.click()
    expect(page.get_by_role("status").first).to_contain_text(re.compile(r"\d"))


def test_a_read_only_dashboard_has_no_forms(visitor: Visits, own: Sites) -> None:
    """The footer says that the dashboard is read-only, and posted forms are rejected."""
    site = own(read_only=True)
    answer = site.worst()
    one = visitor(site, refused=True)
    page = one.page()
    for path in ("/a/{answer}", "/alerts", "/alerts/{open}", "/worker"):
        page.goto(site.url(path))
        expect(page.get_by_role("contentinfo")).to_contain_text("read-only")
        expect(page.locator("form[method=post]")).to_have_count(0)
    sent = one.context.request.post(site.url(f"/a/{answer}/feedback"), form={"verdict": "bad"})
    assert sent.status == 403
    sheet = site.store.answers.load_detail(answer)
    assert sheet is not None
    assert not sheet.feedback


def test_actions_in_two_tabs_do_not_interfere(visitor: Visits, own: Sites) -> None:
    """The forms in both tabs work, and repeating an action is not an error."""
    site = own()
    one = visitor(site)
    first, second = (one.look(site.url("/alerts/{open}")) for _ in range(2))
    for page in (first, second):
        page.get_by_role("button", name="Acknowledge").click()
        expect(page.get_by_role("status").first).to_contain_text("Acknowledged")
    first.goto(site.url("/a/{answer}"))
    second.goto(first.url)
    first.get_by_role("button", name="Yes, it does").click()
    expect(first.get_by_role("status").first).to_contain_text("Label stored")
    second.get_by_role("button", name="No, it does not").click()
    expect(second.get_by_role("status").first).to_contain_text("Label stored")
    second.goto(site.url("/a/{answer}"))
    expect(second.locator("#people")).to_contain_text("replaced by a later label")
