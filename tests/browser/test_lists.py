"""Lists of answers: grouped questions, selections, copied links and live updates."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import insert, select
from tests.browser.servers import Site
from tests.browser.test_refresh import FIVE_TIMES, NEW, SOON, write_answer
from tests.browser.visitor import Visitor
from tests.dashboard.seeding import FINGERPRINTS, SEARCH, SERVICE

from germane.exchange import Exchange, new_exchange_id
from germane.score import Score, band_of
from germane.storage import SamplingDecision
from germane.storage.db.tables import score
from germane.testing import transaction

Visits = Callable[..., Visitor]
Sites = Callable[..., Site]


def ids(page: Page) -> list[str]:
    """Return the ids of the rows, in order."""
    found: list[str] = page.locator("#list input[name=id]").evaluate_all("all => all.map((one) => one.value)")
    return found


def test_grouped_questions_lead_to_their_answers(page: Page, site: Site) -> None:
    """A group opens its worst answer in the drawer, and its link lists its answers."""
    page.goto(site.url(f"/answers?route={SEARCH}"))
    page.get_by_role("group", name="Rows").get_by_role("link", name="Questions").click()
    row = page.locator("#list tbody tr").first
    count = row.locator("b").first.inner_text()
    row.locator("a[data-drawer]").click()
    expect(page.get_by_role("dialog", name="Answer")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Answer")).to_be_hidden()
    row.get_by_role("link").first.click()
    expect(page.locator(".head .note")).to_contain_text(f"{count} matching answers")
    page.get_by_text("More filters").click()
    expect(page.get_by_label("Question is")).not_to_have_value("")


@pytest.mark.parametrize("scripts", [True, False])
def test_selected_answers_can_be_saved_shown_and_labeled(
    visitor: Visits, own: Sites, tmp_path: Path, scripts: bool
) -> None:
    """Checkboxes select rows, with and without JavaScript."""
    site = own()
    page = visitor(site, java_script_enabled=scripts).look(site.url(f"/answers?route={SEARCH}&sort=newest"))
    boxes = page.locator("#list input[name=id]")
    for index in (1, 4):
        boxes.nth(index).check()
    chosen = [str(boxes.nth(index).get_attribute("value")) for index in (1, 4)]
    with page.expect_download() as downloaded:
        page.get_by_role("button", name="Save selection as test set").click()
    downloaded.value.save_as(tmp_path / "rows.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["id"] for row in rows] == chosen
    assert downloaded.value.suggested_filename == "test-set-2-rows.jsonl"
    page.get_by_role("button", name="Label bad").click()
    expect(page.get_by_role("status").first).to_have_text("2 answers labeled bad.")
    expect(page).to_have_url(re.compile(rf"/answers\?route={SEARCH}&sort=newest&bad=2#list$"))
    for index in (1, 4):
        expect(page.locator("#list tbody tr").nth(index).locator(".tag", has_text="✗")).to_be_visible()
        boxes.nth(index).check()
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("heading", name="Selected answers")).to_be_visible()
    assert page.url.count("id=") == 2
    assert "csrf" not in page.url


def test_rows_can_be_selected_by_key(one_page: Page, one_site: Site) -> None:
    """x selects the focused row, and j continues from there; the number of selected rows is announced."""
    one_page.goto(one_site.url("/answers"))
    for _ in range(2):
        one_page.keyboard.press("j")
        one_page.keyboard.press("x")
    boxes = one_page.locator("#list input[name=id]")
    expect(boxes.nth(0)).to_be_checked()
    expect(boxes.nth(1)).to_be_checked()
    expect(one_page.get_by_role("status").last).to_have_text("2 selected")
    boxes.nth(1).focus()
    one_page.keyboard.press("x")
    expect(boxes.nth(1)).not_to_be_checked()
    one_page.keyboard.press("j")
    expect(one_page.locator("#list a[data-drawer]").nth(2)).to_be_focused()
    one_page.keyboard.press("Enter")
    expect(one_page.get_by_role("dialog", name="Answer")).to_be_visible()
    one_page.keyboard.press("Escape")
    expect(boxes.nth(0)).to_be_checked()


def test_labeling_an_answer_in_the_drawer_keeps_the_selection(visitor: Visits, own: Sites) -> None:
    """The list is reloaded when the drawer closes; selected rows stay selected."""
    site = own()
    page = visitor(site).look(site.url("/answers"))
    page.locator("#list input[name=id]").nth(3).check()
    page.locator("#list a[data-drawer]").first.click()
    page.get_by_role("dialog", name="Answer").get_by_role("button", name="No, it does not").click()
    expect(page.get_by_role("status").first).to_contain_text("Label stored")
    page.keyboard.press("Escape")
    expect(page.locator("#list tbody tr").first.locator(".tag", has_text="✗")).to_be_visible()
    expect(page.locator("#list input[name=id]").nth(3)).to_be_checked()


@pytest.mark.parametrize("path", ["/answers?window=24h&sort=newest", f"/r/{SEARCH}", "/alerts/{open}", "/"])
def test_the_copy_button_copies_a_link_and_confirms_it(visitor: Visits, one_site: Site, path: str) -> None:
    """The button confirms it, visibly and for screen readers, and the link does not depend on the time."""
    context = visitor(one_site)
    context.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.look(one_site.url(path))
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    expect(page.get_by_role("status").last).to_have_text("Link copied")
    link = page.evaluate("navigator.clipboard.readText()")
    expect(page.get_by_role("button", name="Copy link")).to_be_visible()
    assert link.startswith(one_site.address + "/answers?")
    assert "window=" not in link
    response = page.goto(link)
    assert response is not None
    assert response.status == 200
    assert ids(page)


def test_a_link_that_cannot_be_copied_is_shown_in_a_dialog(visitor: Visits, one_site: Site) -> None:
    """Without access to the clipboard, a dialog shows the link."""
    shown: list[str] = []
    context = visitor(one_site)
    context.context.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page = context.page()

    def answer(dialog: Any) -> None:
        shown.append(dialog.default_value)
        dialog.dismiss()

    page.on("dialog", answer)
    page.goto(one_site.url("/answers"))
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copy link")).to_be_visible()
    assert shown
    assert shown[0].startswith(one_site.address + "/answers?since=")


def write_answers(site: Site, count: int, age: timedelta = timedelta()) -> list[str]:
    """Write scored answers, and return their ids, newest first."""
    fingerprint = FINGERPRINTS["answer_relevancy"]
    base = replace(Exchange.from_texts("Is it new?", "It is."), service=SERVICE, route=SEARCH)
    made = [
        replace(base, id=new_exchange_id(), started_at=site.clock.now - age - timedelta(milliseconds=number + 1))
        for number in range(count)
    ]
    site.store.exchanges.add(made)
    decisions = [SamplingDecision(one.id, 1.0, "always") for one in made]
    site.store.sampling.assign_tasks(decisions, {"answer_relevancy": fingerprint})
    wanted = {one.id for one in made}
    claims = site.store.queue.claim_tasks("new", {"answer_relevancy": fingerprint}, limit=500, lease=timedelta(hours=1))
    tasks = [task for claim in claims for task in claim.tasks if task.exchange_id in wanted]
    value = Score(scorer="answer_relevancy", fingerprint=fingerprint, value=0.9, label=band_of(0.9))
    site.store.queue.complete_tasks("new", [(task, value) for task in tasks])
    site.store.queue.release_tasks("new")
    return [one.id for one in made]


def test_a_live_list_shows_new_answers_at_the_top(own: Sites, visitor: Visits) -> None:
    """They are highlighted and announced; the selection and the focus stay; answers scored late are in order."""
    site = own(refresh=SOON)
    page = visitor(site).look(site.url("/answers?sort=newest&refusals=show"))
    before = ids(page)
    page.locator("#list input[name=id]").first.check()
    page.locator("#list a[data-drawer]").nth(1).focus()
    write_answer(site.store)
    page.get_by_role("button", name="Live").press("Enter")
    expect(page.get_by_role("button", name="Live")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#list tbody tr").first).to_contain_text(NEW)
    expect(page.locator("#list tbody tr").first).to_have_class("fresh")
    expect(page.get_by_role("status").last).to_have_text("1 new answer")
    assert ids(page)[1:] == before
    expect(page.locator("#list input[name=id]").nth(1)).to_be_checked()
    late = write_answers(site, 2, timedelta(seconds=10))
    expect(page.get_by_role("status").last).to_have_text("2 new answers")
    assert ids(page)[:4] == ["f" * 32, *late, before[0]]
    many = write_answers(site, 60)
    expect(page.get_by_role("status").last).to_have_text("50 new answers")
    assert ids(page) == many[:50]


def test_a_live_list_keeps_both_rows_of_an_answer_with_two_scores(own: Sites, visitor: Visits) -> None:
    """An answer that was scored with two fingerprints has two rows, which are updated and not repeated."""
    site = own(refresh=SOON)
    write_answer(site.store)
    with transaction(site.store) as connection:
        stored = connection.execute(select(score).where(score.c.exchange_id == "f" * 32)).mappings().one()
        again = {name: value for name, value in stored.items() if name != "id"} | {"fingerprint": "other"}
        connection.execute(insert(score).values(again))
    page = visitor(site).look(site.url("/answers?sort=newest"))
    before = ids(page)
    polls: list[str] = []
    page.on("requestfinished", lambda request: polls.append(request.url) if "/answers/new" in request.url else None)
    page.get_by_role("button", name="Live").click()
    for _ in range(3):
        page.evaluate(FIVE_TIMES)
    assert len(polls) > 2
    assert before[:2] == ["f" * 32] * 2
    assert ids(page) == before


def test_a_live_list_sends_no_requests_after_it_is_stopped(own: Sites, visitor: Visits) -> None:
    """No requests are sent after the button is pressed again, and none while the tab is hidden."""
    site = own(refresh=SOON)
    page = visitor(site).look(site.url("/answers?sort=newest"))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/answers/new" in request.url else None)
    button = page.get_by_role("button", name="Live")
    with page.expect_request(re.compile("/answers/new")):
        button.click()
    page.evaluate("Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true })")
    page.wait_for_load_state("networkidle")
    asked.clear()
    write_answer(site.store)
    page.evaluate(FIVE_TIMES)
    assert asked == []
    with page.expect_request(re.compile("/answers/new")):
        page.evaluate("delete document.visibilityState")
    expect(page.locator("#list tbody tr").first).to_contain_text(NEW)
    button.click()
    expect(page.get_by_role("status").last).to_have_text("Live updates stopped.")
    page.wait_for_load_state("networkidle")
    asked.clear()
    page.evaluate(FIVE_TIMES)
    assert asked == []


def test_the_filter_form_submits_only_the_fields_that_are_filled_in(page: Page, site: Site) -> None:
    """The URL contains no empty parameters."""
    page.goto(site.url("/answers"))
    page.get_by_label("Question or answer contains").fill("the")
    page.get_by_role("button", name="Apply").click()
    page.wait_for_url(re.compile("text=the"))
    assert "=&" not in page.url
    assert not page.url.endswith("=")


def test_the_number_of_selected_answers_is_shown(page: Page, site: Site) -> None:
    """It follows the check boxes."""
    page.goto(site.url("/answers"))
    for number in (1, 2):
        page.locator("#list input[name=id]").nth(number).check()
        expect(page.locator("#selection .note")).to_have_text(f"Selected answers: {number}")


def test_a_session_is_shown_as_a_conversation(page: Page, site: Site) -> None:
    """An answer leads to its session, and a turn opens in the drawer."""
    page.goto(site.url("/a/{answer}"))
    page.get_by_role("link", name="Conversation").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Session session-")
    page.locator(".turns a[data-drawer]").first.click()
    expect(page.get_by_role("dialog", name="Answer")).to_be_visible()
    page.keyboard.press("j")
    expect(page.get_by_role("dialog", name="Answer")).to_contain_text("in the list")
