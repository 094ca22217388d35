"""Answers that were drawn at random are labeled by keyboard, one after another."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from tests.browser.servers import Site
from tests.browser.visitor import NARROW, Visitor
from tests.dashboard.hostile import write_hostile_exchanges
from tests.dashboard.seeding import NOW

from germane.storage import DrawnCounts, LabelPopulation, LabelWave

Visits = Callable[..., Visitor]
KEYS = {"y": 1.0, "p": 0.5, "n": 0.0}
SAID = ["y", "p", "n", "y", "c", "s"] * 10
"""Keys for 60 answers."""


def drawn(site: Site) -> list[LabelWave]:
    """Return the waves that are not in the sample week."""
    return [wave for wave in site.store.draws.list_waves() if wave.id != site.seeded.wave]


def progress(page: Page, text: str) -> None:
    """Wait until the page shows this progress."""
    expect(page.locator(".head .note")).to_have_text(text)


def test_sixty_answers_are_labeled_by_keyboard(visitor: Visits, own: Callable[..., Site]) -> None:
    """Two waves of one window: 50 answers, and 10 of 50 others. Each label is on the answer that was shown."""
    site = own()
    page = visitor(site).look(site.url("/labels"))
    page.get_by_role("button", name="Label 50 answers").click()
    page.get_by_label("Your name").fill("Ada")
    page.get_by_role("heading", level=1).click()
    given: dict[str, float] = {}
    for number, key in enumerate(SAID):
        if number == 50:
            expect(page.get_by_role("heading", level=1)).to_have_text("This wave is complete")
            expect(page.locator("#counts")).to_contain_text("34")
            page.get_by_role("button", name="Label 50 more answers of this window").click()
        progress(page, f"{number % 50 + 1} of 50")
        answer = str(page.locator(".said").get_attribute("data-answer"))
        if key in KEYS:
            given[answer] = KEYS[key]
        page.keyboard.press(key)
    progress(page, "11 of 50")

    first, newest = sorted(drawn(site), key=lambda wave: wave.total.open)
    assert (newest.since, newest.until) == (first.since, first.until)
    said = Counter(SAID[:50])
    assert first.total == DrawnCounts(
        labeled=said["y"] + said["p"] + said["n"], cannot_tell=said["c"], skipped=said["s"]
    )
    labels = site.store.draws.list_labels([first.id, newest.id])
    assert {label.exchange_id: label.label for label in labels} == given
    assert all(label.by_person.keys() == {"Ada"} for label in labels)
    page.keyboard.press("u")
    progress(page, "10 of 50")
    expect(page.locator(".said")).to_have_attribute("data-answer", answer)
    assert site.store.draws.get_wave(newest.id).total == replace(newest.total, skipped=1, open=41)


def test_keys_that_are_pressed_while_a_page_loads_label_nothing(visitor: Visits, own: Callable[..., Site]) -> None:
    """They would be about the answer that is still shown. Keys that are typed into a field are text."""
    site = own()
    page = visitor(site).look(site.url("/labels"))
    page.get_by_role("button", name="Label 50 answers").click()
    page.get_by_label("Your name").press("y")
    progress(page, "1 of 50")
    page.get_by_role("heading", level=1).click()
    page.evaluate("['y', 'n', 'n'].forEach((key) => document.body.dispatchEvent("
                  "new KeyboardEvent('keydown', { key, bubbles: true })))")  # fmt: skip
    progress(page, "2 of 50")
    (wave,) = drawn(site)
    (label,) = site.store.draws.list_labels([wave.id])
    assert (label.label, label.by_person) == (1.0, {"y": 1.0})


@pytest.mark.parametrize("viewport", [None, NARROW])
def test_pages_of_labels_are_accessible_and_fit_the_screen(
    visitor: Visits, own: Callable[..., Site], viewport: dict[str, int] | None, overflow_of: Callable[[Page], int]
) -> None:
    """With hostile texts, in both themes; the list of waves, an answer, and the end."""
    site = own()
    write_hostile_exchanges(site.store)
    population = LabelPopulation(
        since=NOW - timedelta(days=8), until=NOW, scorer="answer_relevancy", service='h"ost<ile>'
    )
    wave = site.store.draws.draw(population, 50)
    page = visitor(site, bypass_csp=True, **({} if viewport is None else {"viewport": viewport})).page()
    axe, found = Axe(), list[str]()
    for step in range(wave.total.size + 1):
        page.goto(site.url(f"/labels/{wave.id}"))
        page.locator("main details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
        assert overflow_of(page) <= 0
        assert page.evaluate("window.__germane_was_here") is None
        if step in (0, wave.total.size):
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # one of the schemes
                found += [f"{one['id']}: {one['nodes'][0]['html']}" for one in axe.run(page).response["violations"]]
        if step < wave.total.size:
            page.locator("main").press("s")
            expect(page).to_have_url(re.compile(wave.id))
    page.goto(site.url("/labels"))
    assert overflow_of(page) <= 0
    found += [f"{one['id']}: {one['nodes'][0]['html']}" for one in axe.run(page).response["violations"]]
    assert found == []


def test_answers_are_labeled_without_javascript(visitor: Visits, own: Callable[..., Site]) -> None:
    """Each button submits the form and leads to the next answer; the name is remembered."""
    site = own()
    page = visitor(site, java_script_enabled=False).look(site.url("/labels"))
    page.get_by_role("button", name="Label 50 answers").click()
    page.get_by_label("Your name").fill("Bo")
    for number, name in enumerate(("It does", "In part", "It does not", "Cannot tell", "Skip"), start=1):
        progress(page, f"{number} of 50")
        page.get_by_role("button", name=name, exact=True).click()
    expect(page.get_by_label("Your name")).to_have_value("Bo")
    page.get_by_role("button", name="Undo").click()
    progress(page, "5 of 50")
    page.get_by_role("link", name="Stop for now").click()
    page.get_by_role("row", name=drawn(site)[0].id).get_by_role("link", name="Continue").click()
    progress(page, "5 of 50")
    (wave,) = drawn(site)
    assert wave.total == DrawnCounts(labeled=3, cannot_tell=1, open=46)
