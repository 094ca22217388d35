"""What people do on the pages is in the database afterwards, and the pages say so."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import expect
from tests.browser.servers import Site
from tests.browser.visitor import Visitor

Visits = Callable[..., Visitor]
Sites = Callable[..., Site]


def test_the_judge_is_wrong(visitor: Visits, own: Sites) -> None:
    """A label is counted, stands on the page, can be looked for, and takes the place of an earlier one of the page."""
    site = own()
    answer = site.worst()
    page = visitor(site).look(site.url(f"/a/{answer}"))
    page.get_by_label("Comment (optional)").fill("exactly what I asked for")
    page.get_by_role("button", name="Yes, it does").click()
    expect(page.get_by_role("status").first).to_have_text("Label stored: the answer addresses the question.")
    expect(page.locator("#people")).to_contain_text("exactly what I asked for")
    expect(page.locator("#people")).to_contain_text(
        re.compile(r"People disagree with this judge on \d+ of \d+ labeled")
    )
    sheet = site.store.answers.load_detail(answer)
    assert sheet is not None
    assert [(one.score, one.comment) for one in sheet.feedback] == [(1.0, "exactly what I asked for")]
    page.goto(site.url("/answers?labeled=yes&route=docs-search"))
    expect(page.locator(f'a[href*="{answer}"]')).to_have_count(1)


def test_a_label_in_the_drawer_leads_back_to_the_answer(visitor: Visits, own: Sites) -> None:
    """And on from there to the list that it was opened from."""
    site = own()
    page = visitor(site).look(site.url("/answers?route=docs-search"))
    page.locator("table.answers a[data-drawer]").first.click()
    page.get_by_role("dialog", name="Answer").get_by_role("button", name="No, it does not").click()
    expect(page.get_by_role("status").first).to_have_text("Label stored: the answer does not address the question.")
    page.get_by_role("link", name="Filtered answers").click()
    expect(page).to_have_url(site.url("/answers?route=docs-search"))


def test_an_answer_is_scored_again(visitor: Visits, own: Sites) -> None:
    """Its tasks wait again, and the page says that the score is the old one until then."""
    site = own()
    answer = site.worst()
    page = visitor(site).look(site.url(f"/a/{answer}"))
    page.get_by_role("button", name="Score again").click()
    expect(page.get_by_role("status").first).to_contain_text("The current score stays until the new one")
    expect(page.locator(".score-head")).to_contain_text("is being scored again")
    sheet = site.store.answers.load_detail(answer)
    assert sheet is not None
    assert {one.state for one in sheet.tasks} == {"pending"}


def test_an_alert_is_known_silenced_and_over(visitor: Visits, own: Sites) -> None:
    """With the name of who says so, which is filled in the next time; each act is in its story."""
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
    page.get_by_label("For").select_option("1h")
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


def test_a_drop_is_accepted_after_a_second_look(visitor: Visits, own: Sites) -> None:
    """The first click says what follows; the second has the time since count as normal."""
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


def test_failures_are_tried_again(visitor: Visits, own: Sites) -> None:
    """A button of the worker's page takes all of one kind, and says how many."""
    site = own()
    page = visitor(site).look(site.url("/worker"))
    page.locator("main").get_by_role("button", name="Retry now").first.click()
    expect(page.get_by_role("status").first).to_contain_text(re.compile(r"\d"))


def test_read_only_shows_all_and_takes_nothing(visitor: Visits, own: Sites) -> None:
    """No form that writes is shown, the foot says so, and what is sent all the same is refused."""
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


def test_two_tabs_do_not_stand_in_each_others_way(visitor: Visits, own: Sites) -> None:
    """Forms of both are taken, and what is done already in one is no error in the other."""
    site = own()
    one = visitor(site)
    first, second = (one.look(site.url("/alerts/{open}")) for _ in range(2))
    for page in (first, second):
        page.get_by_role("button", name="Acknowledge").click()
        expect(page.get_by_role("status").first).to_contain_text("Acknowledged by")
    first.goto(site.url("/a/{answer}"))
    second.goto(first.url)
    first.get_by_role("button", name="Yes, it does").click()
    expect(first.get_by_role("status").first).to_contain_text("Label stored")
    second.get_by_role("button", name="No, it does not").click()
    expect(second.locator("#people")).to_contain_text("replaced by a later label")
