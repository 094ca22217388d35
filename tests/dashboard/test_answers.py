"""The answer list: filters, counts, order, and exported files."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.dashboard.conftest import BOTH, Week
from tests.dashboard.hostile import TEXTS, write_hostile_exchanges

from germane.dashboard.pages.answers import CSV_COLUMNS
from germane.exchange import Exchange
from germane.insights import answers as module

HTML = {"Accept": "text/html"}


def row_ids(text: str) -> list[str]:
    """Return the ids of the answers on a page, in order."""
    return re.findall(r'<td class="asked-for"><a href="/a/([0-9a-f]+)', text)


def link_of(text: str, name: str) -> str:
    """Return the target of the link with this text."""
    found = re.search(rf'<a[^>]*href="([^"]+)"[^>]*>{name}', text)
    assert found is not None, name
    return found[1].replace("&amp;", "&")


def as_json(page: TestClient, query: str) -> dict[str, Any]:
    """Return the same answers as JSON."""
    response = page.get(f"/answers.json?{query}")
    assert response.status_code == 200
    found: dict[str, Any] = response.json()
    return found


def test_the_first_page_shows_the_lowest_scores_and_the_number_of_answers(page: TestClient, week: Week) -> None:
    """The default scorer and window apply; counting stops at a thousand, and the page says so."""
    text = page.get("/answers", headers=HTML).text
    values = sorted(week.seeded.values())

    assert len(row_ids(text)) == 50
    assert "first 50 of more than 1,000" in text
    assert len(values) > 1_000
    assert "41 refusals" in text


VALUES = ("user", "session", "service", "model", "prompt_version", "attributes.tenant", "attributes.beta")


def value_of(exchange: Exchange, name: str) -> str:
    """Return a value of an exchange as it is written in a URL."""
    value = exchange.attributes[name.partition(".")[2]] if "." in name else getattr(exchange, name)
    return str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("state", ["", "&state=any", "&sort=newest", "&labeled=yes", "&text=the", "&route=ask"])
def test_each_value_of_an_answer_links_to_the_answers_with_the_same_value(
    page: TestClient, week: Week, state: str
) -> None:
    """The link selects exactly these answers, in every state and order."""
    exchange = week.seeded.exchanges[-90]
    answer = page.get(f"/a/{exchange.id}", headers=HTML).text.replace("&amp;", "&")
    everything = as_json(page, f"window=24h{state}&refusals=show")["answers"]
    wrong, found = [], 0
    for name in VALUES:
        value = value_of(exchange, name)
        rows = as_json(page, f"window=24h&{name}={value}{state}&refusals=show")["answers"]
        matching = {one.id for one in week.seeded.exchanges if value_of(one, name) == value}
        expected = [row["exchange_id"] for row in everything if row["exchange_id"] in matching]
        found += bool(rows)
        if f'href="/answers?{name}={value}&sort=newest"' not in answer:
            wrong.append(f"{name}: no link on the page of the answer")
        if [row["exchange_id"] for row in rows] != expected:
            wrong.append(f"{name}: not the {len(expected)} answers with the value {value}")

    assert not wrong
    assert found == len(VALUES) or (found >= 5 and state in {"&labeled=yes", "&route=ask", "&text=the"})


@pytest.mark.slow
def test_refusals_can_be_listed_or_hidden_and_are_counted(page: TestClient, week: Week) -> None:
    """The number of refusals among the answers is shown, and links to them and to the other answers."""
    values = week.seeded.values()
    others = sorted(value for value in values if value > 0)
    text = page.get("/answers", headers=HTML).text
    onward = link_of(text, f"{len(values) - len(others)} refusals")
    rows = {name: as_json(page, f"refusals={name}")["answers"] for name in ("hide", "only", "show")}

    assert [row["value"] for row in rows["hide"]] == others
    assert [row["value"] for row in rows["only"]] == [0.0] * (len(values) - len(others))
    assert [row["value"] for row in rows["show"]] == sorted(values)
    assert [row["value"] for row in as_json(page, "")["answers"]] == sorted(values)
    assert "more than 1,000 matching answers" in page.get(link_of(text, "hide"), headers=HTML).text
    assert [
        row["value"] for row in as_json(page, "sort=newest&low=1&refusals=hide")["answers"] if not row["value"]
    ] == []
    assert {row["label"] for row in as_json(page, "sort=newest&below=0.01")["answers"]} == {"noncommittal"}
    assert page.get(onward, headers=HTML).text.count(">refusal</span>") == len(values) - len(others)


def test_the_next_page_of_answers_has_its_own_url(page: TestClient) -> None:
    """The URL contains the filter and the position, and no answer appears on two pages."""
    first = page.get("/answers?route=docs-search&below=0.5", headers=HTML).text
    onward = link_of(first, "Next")
    second = page.get(onward, headers=HTML).text

    assert "route=docs-search" in onward
    assert len(row_ids(first)) == 50
    assert row_ids(second)
    assert not set(row_ids(first)) & set(row_ids(second))
    assert row_ids(page.get(onward, headers=HTML).text) == row_ids(second)


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


@pytest.mark.slow
def test_filters_in_the_url_apply_to_pages_and_exported_files(page: TestClient) -> None:
    """Every filter returns only matching answers."""
    for query, fits in FILTERS.items():
        found = as_json(page, query)["answers"]
        text = page.get(f"/answers?{query}", headers=HTML).text

        assert found, query
        assert all(fits(row) for row in found), query
        assert row_ids(text) == [row["exchange_id"] for row in found[:50]], query


def test_column_headings_sort_the_list_of_answers(page: TestClient) -> None:
    """Each heading is a link; the active one is announced to screen readers, and a second click reverses the order."""
    text = page.get("/answers?route=ask", headers=HTML).text
    highest = page.get(link_of(text, "Score"), headers=HTML).text
    newest = as_json(page, "route=ask&sort=newest")["answers"]

    assert 'aria-sort="ascending"><a href="/answers?route=ask&amp;sort=highest"' in text
    assert 'aria-sort="descending"' in highest
    assert [row["started_at"] for row in newest] == sorted((row["started_at"] for row in newest), reverse=True)
    slowest = [row["duration"] for row in as_json(page, "route=ask&sort=slowest")["answers"]]
    assert slowest == sorted(slowest, reverse=True)


def test_a_mean_is_shown_only_for_unbiased_selections(page: TestClient, week: Week) -> None:
    """The mean has n and interval and equals the store's mean; answers filtered by score have no mean."""
    window = week.store.trends.window_summary(since=week.seeded.exchanges[0].started_at, until=week.seeded.now)
    (line,) = (one for one in window.routes if (one.route, one.scorer) == ("ask", "answer_relevancy"))

    text = page.get("/answers?route=ask", headers=HTML).text

    assert f"<b>{line.mean:.2f}</b>" in text
    assert f"n={line.n}" in text
    for picked in ("below=0.5", "text=a", "labeled=yes", "state=failed", "label=off", "low=1"):
        assert "95% interval" not in page.get(f"/answers?route=ask&{picked}", headers=HTML).text, picked
    assert "n=" in page.get("/answers?route=ask&model=larch-2", headers=HTML).text


def test_the_filter_form_works_without_javascript(page: TestClient) -> None:
    """The GET form contains the current values and keeps the window."""
    text = page.get("/answers?window=24h&text=export&route=docs-search&sort=newest", headers=HTML).text
    (form,) = re.findall(r'<form class="panel filters" method="get".*?</form>', text, re.DOTALL)

    assert 'name="text" value="export"' in form
    assert '<option value="docs-search" selected>' in form
    assert '<option value="newest" selected>' in form
    assert '<input type="hidden" name="window" value="24h">' in form


def test_lists_of_unscored_answers_ignore_score_filters(page: TestClient) -> None:
    """Unscored answers have no value or label, and cannot be sorted by score; a reason implies its state."""
    assert as_json(page, "state=any&below=0.1&sort=highest")["query"]["filter"] == {"state": "any"}
    assert {row["reason"] for row in as_json(page, "reason=judge_timeout")["answers"]} == {"judge_timeout"}
    assert {row["state"] for row in as_json(page, "state=any&reason=not_sampled")["answers"]} == {"skipped"}


def test_an_empty_list_of_answers_suggests_a_next_step(page: TestClient) -> None:
    """The page suggests clearing the filter or choosing a longer window."""
    text = page.get("/answers?text=nothing+like+it", headers=HTML).text

    assert "No matching answers." in text
    assert 'href="/answers">Clear the filter' in text


def test_exported_csv_has_the_same_answers_and_no_formulas(own_page: TestClient, own_week: Week) -> None:
    """Cells that a spreadsheet would evaluate are quoted as text, and control characters are removed."""
    write_hostile_exchanges(own_week.store)

    response = own_page.get("/answers.csv?service=h%22ost%3Cile%3E")
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


@BOTH
def test_exported_files_are_truncated_and_state_the_limit(page: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON says whether the file contains all matching answers."""
    whole = as_json(page, "route=docs-search")
    monkeypatch.setattr(module, "MAX_EXPORTED", 30)
    monkeypatch.setattr(module, "EXPORT_BATCH", 20)

    part = as_json(page, "route=docs-search")
    lines = page.get("/answers.csv?route=docs-search").text.splitlines()

    assert (whole["schema_version"], whole["complete"], part["complete"]) == (1, True, False)
    assert part["answers"] == whole["answers"][:30]
    assert len(lines) == 1 + 30 + 1
    assert "There may be more" in lines[-1]


def test_hostile_answers_are_escaped_in_the_list(own_page: TestClient, own_week: Week) -> None:
    """Tags, attributes and template code in answers are text."""
    write_hostile_exchanges(own_week.store)

    text = own_page.get("/answers?service=h%22ost%3Cile%3E&sort=newest", headers=HTML).text

    assert "<script>window" not in text
    assert "<svg onload" not in text
    assert ' onfocus="' not in text
    assert "{{ 7 * 7 }}" in text
    assert len(text) < 200_000
