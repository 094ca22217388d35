"""The list of answers: all of it in the address, honest about how many there are, and the same as a file."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.dashboard.conftest import Week
from tests.dashboard.hostile import TEXTS, hostile

from germane.dashboard.pages.answers import CSV_COLUMNS
from germane.insights import answers as module

HTML = {"Accept": "text/html"}


def rows(text: str) -> list[str]:
    """Return the ids of the answers on a page, in their order."""
    return re.findall(r'<td class="asked-for"><a href="/a/([0-9a-f]+)', text)


def link(text: str, name: str) -> str:
    """Return where a link of this text leads."""
    found = re.search(rf'<a[^>]*href="([^"]+)"[^>]*>{name}', text)
    assert found is not None, name
    return found[1].replace("&amp;", "&")


def rest(page: TestClient, query: str) -> dict[str, Any]:
    """Return the same answers as JSON."""
    response = page.get(f"/answers.json?{query}")
    assert response.status_code == 200
    found: dict[str, Any] = response.json()
    return found


def test_the_first_page_shows_the_worst_and_how_many_there_are(page: TestClient, week: Week) -> None:
    """Of the usual metric and the usual window; counting ends at a thousand, and says so."""
    text = page.get("/answers", headers=HTML).text
    values = sorted(week.seeded.values())

    assert len(rows(text)) == 50
    assert "first 50 of more than 1,000" in text
    assert len(values) > 1_000
    assert text.index(">refusal<") < text.index('class="meter low"')


def test_the_next_page_follows_and_can_be_sent(page: TestClient) -> None:
    """Its address holds the filter and the place, and no answer is on both."""
    first = page.get("/answers?route=docs-search&below=0.5", headers=HTML).text
    onward = link(first, "Next")
    second = page.get(onward, headers=HTML).text

    assert "route=docs-search" in onward
    assert len(rows(first)) == 50
    assert rows(second)
    assert not set(rows(first)) & set(rows(second))
    assert rows(page.get(onward, headers=HTML).text) == rows(second)


FILTERS: Mapping[str, Callable[[dict[str, Any]], Any]] = {
    "route=docs-search": lambda row: row["route"] == "docs-search",
    "below=0.5": lambda row: row["value"] < 0.5,
    "at_least=0.6&below=0.7": lambda row: 0.6 <= row["value"] < 0.7,
    "label=noncommittal": lambda row: row["label"] == "noncommittal",
    "low=1": lambda row: row["label"] in {"irrelevant", "noncommittal"},
    "model=larch-2": lambda row: row["model"] == "larch-2",
    "prompt_version=6": lambda row: row["prompt_version"] == "6",
    "scorer=faithfulness": lambda row: row["scorer"] == "faithfulness",
    "text=WEBHOOK": lambda row: "webhook" in f"{row['question']} {row['answer']}".lower(),
    "labeled=yes": lambda row: bool(row["labels"]),
    "labeled=no&route=ask": lambda row: not row["labels"],
    "state=failed": lambda row: row["state"] == "failed" and row["value"] is None and row["reason"],
    "state=failed&reason=judge_timeout": lambda row: row["reason"] == "judge_timeout",
    "state=skipped&reason=not_sampled": lambda row: row["reason"] == "not_sampled",
    "state=waiting": lambda row: row["state"] in {"pending", "running"},
}


def test_a_filter_of_the_address_takes_what_fits(page: TestClient) -> None:
    """On the page and in the files, whichever it is."""
    for query, fits in FILTERS.items():
        found = rest(page, query)["answers"]
        text = page.get(f"/answers?{query}", headers=HTML).text

        assert found, query
        assert all(fits(row) for row in found), query
        assert rows(text) == [row["exchange_id"] for row in found[:50]], query


def test_headings_sort(page: TestClient) -> None:
    """Each is a link; the one in force is told to screen readers, and clicked again it turns round."""
    text = page.get("/answers?route=ask", headers=HTML).text
    highest = page.get(link(text, "Score"), headers=HTML).text
    newest = rest(page, "route=ask&sort=newest")["answers"]

    assert 'aria-sort="ascending"><a href="/answers?route=ask&amp;sort=highest"' in text
    assert 'aria-sort="descending"' in highest
    assert [row["started_at"] for row in newest] == sorted((row["started_at"] for row in newest), reverse=True)
    slowest = [row["duration"] for row in rest(page, "route=ask&sort=slowest")["answers"]]
    assert slowest == sorted(slowest, reverse=True)


def test_a_mean_stands_only_where_it_is_one(page: TestClient, week: Week) -> None:
    """With interval and n, and the one that the store has for the window; never of answers picked by their score."""
    window = week.store.trends.window_summary(since=week.seeded.exchanges[0].started_at, until=week.seeded.now)
    (line,) = (one for one in window.routes if (one.route, one.scorer) == ("ask", "answer_relevancy"))

    text = page.get("/answers?route=ask", headers=HTML).text

    assert f"<b>{line.mean:.2f}</b>" in text
    assert f"n={line.n}" in text
    for picked in ("below=0.5", "text=a", "labeled=yes", "state=failed", "label=off", "low=1"):
        assert "95 % interval" not in page.get(f"/answers?route=ask&{picked}", headers=HTML).text, picked
    assert "n=" in page.get("/answers?route=ask&model=larch-2", headers=HTML).text


def test_the_filter_works_without_a_script(page: TestClient) -> None:
    """A form that asks by GET, whose fields hold what is asked for, and keeps the window."""
    text = page.get("/answers?window=24h&text=export&route=docs-search&sort=newest", headers=HTML).text
    (form,) = re.findall(r'<form class="panel filters" method="get".*?</form>', text, re.DOTALL)

    assert 'name="text" value="export"' in form
    assert '<option value="docs-search" selected>' in form
    assert '<option value="newest" selected>' in form
    assert '<input type="hidden" name="window" value="24h">' in form


UNREADABLE = (
    "below=abc",
    "below=nan&at_least=inf",
    "sort=sideways",
    "state=asleep",
    "after=x",
    "after=0.5~2026-11-20T10:00:00~%00",
    "after=0~0001-01-01T00:00:00%2B14:00~1",
    "scorer=%00",
    "service=a%00",
    "labeled=perhaps",
    "text=%00",
    "route=%00",
    "reason=%27",
    "text=" + "x" * 300,
)


def test_what_cannot_be_read_is_taken_as_not_given(page: TestClient) -> None:
    """Nobody gets an error for an address that was cut or made up."""
    for query in UNREADABLE:
        response = page.get(f"/answers?{query}", headers=HTML)

        assert response.status_code == 200, query
        assert "first 50 of more than 1,000" in response.text, query


def test_a_state_is_asked_for_what_it_can_tell(page: TestClient) -> None:
    """What has no score has no value, label or order of scores; a reason leads to what has one."""
    assert rest(page, "state=any&below=0.1&sort=highest")["query"]["filter"] == {"state": "any"}
    assert {row["reason"] for row in rest(page, "reason=judge_timeout")["answers"]} == {"judge_timeout"}
    assert {row["state"] for row in rest(page, "state=any&reason=not_sampled")["answers"]} == {"skipped"}


def test_nothing_that_fits_says_what_to_do(page: TestClient) -> None:
    """Clear the filter, or look at a longer window."""
    text = page.get("/answers?text=nothing+like+it", headers=HTML).text

    assert "No matching answers." in text
    assert 'href="/answers">Clear the filter' in text


def test_a_file_holds_the_same_answers_and_no_formula(page: TestClient, week: Week) -> None:
    """Each cell that a spreadsheet would take for a formula is told to be text; no control character is left."""
    hostile(week.store)

    response = page.get("/answers.csv?service=h%22ost%3Cile%3E")
    found = list(csv.DictReader(io.StringIO(response.text)))

    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert "answers.csv" in response.headers["content-disposition"]
    assert len(found) == len(TEXTS)
    assert tuple(found[0]) == CSV_COLUMNS
    cells = [cell for row in found for cell in row.values()]
    assert not [cell for cell in cells if cell[:1] in {"=", "+", "-", "@", "\t"} and not _is_number(cell)]
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]", "".join(cells))
    assert "'=HYPERLINK" in response.text


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?[\d.e-]+", text) is not None


def test_a_file_has_an_end_and_says_so(page: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many answers as one file holds; JSON tells whether these were all."""
    whole = rest(page, "route=docs-search")
    monkeypatch.setattr(module, "MAX_EXPORTED", 30)
    monkeypatch.setattr(module, "EXPORT_BATCH", 20)

    part = rest(page, "route=docs-search")
    lines = page.get("/answers.csv?route=docs-search").text.splitlines()

    assert (whole["schema_version"], whole["complete"], part["complete"]) == (1, True, False)
    assert part["answers"] == whole["answers"][:30]
    assert len(lines) == 1 + 30 + 1
    assert "There may be more" in lines[-1]


def test_hostile_answers_are_shown_and_nothing_else(page: TestClient, week: Week) -> None:
    """No tag, no attribute and no template of theirs is one of ours."""
    hostile(week.store)

    text = page.get("/answers?service=h%22ost%3Cile%3E&sort=newest", headers=HTML).text

    assert "<script>window" not in text
    assert "<svg onload" not in text
    assert ' onfocus="' not in text
    assert "{{ 7 * 7 }}" in text
    assert len(text) < 200_000
