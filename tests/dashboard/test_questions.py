"""Answers grouped by question on the answer list."""

from __future__ import annotations

import html
import re
from collections import Counter

import pytest
from starlette.testclient import TestClient
from tests.cases import each
from tests.dashboard.conftest import BOTH, Week
from tests.dashboard.hostile import write_hostile_exchanges

from germane.storage.answers import search
from germane.storage.answers.questions import question_key

HTML = {"Accept": "text/html"}


def rows_of(page: TestClient, address: str) -> list[str]:
    """Return the rows of the table on a page."""
    response = page.get(address, headers=HTML)
    assert response.status_code == 200
    (table,) = re.findall(r"<tbody>(.*?)</tbody>", response.text, re.DOTALL)
    return re.findall(r"<tr[^>]*>(.*?)</tr>", table, re.DOTALL)


def link_in(row: str) -> str:
    """Return the target of the first link in a row."""
    found = re.search(r'href="(/answers[^"]*)"', row)
    assert found is not None
    return html.unescape(found[1])


def count_in(row: str) -> int:
    """Return the number of answers in a row."""
    found = re.search(r"<b>([\d,]+)</b>", row)
    assert found is not None
    return int(found[1].replace(",", ""))


@pytest.mark.slow
@each("filters", ["", "&below=0.5", "&route=docs-search", "&refusals=hide", "&text=the"])
def test_each_group_of_answers_links_to_exactly_its_answers(page: TestClient, week: Week, filters: str) -> None:
    """The number of answers in a row is the number of answers that its link lists, under the same filter."""
    rows = rows_of(page, f"/answers?group=question&order=answers&window=24h{filters}")
    counts = [count_in(row) for row in rows]
    questions = {one.id: question_key(one.question or "") for one in week.seeded.exchanges}
    listed = page.get(f"/answers.json?window=24h{filters}").json()["answers"]
    expected = Counter(questions[row["exchange_id"]] for row in listed)

    assert counts == sorted(expected.values(), reverse=True)
    for row, count in zip(rows, counts, strict=True):
        answers = page.get(link_in(row).replace("/answers?", "/answers.json?")).json()["answers"]
        assert len(answers) == count
        assert len({question_key(answer["question"]) for answer in answers}) == 1
        assert f"{count} of {count}<" in page.get(link_in(row), headers=HTML).text or count > 50


def test_a_group_and_its_list_of_answers_show_the_same_mean(page: TestClient, week: Week) -> None:
    """Each mean has n and an interval; with fewer than 20 scores, there is not enough data."""
    (row, *_) = rows_of(page, "/answers?group=question")
    summary = re.search(r'<span class="mean">.*?</span></span>', row)
    (few, *_) = rows_of(page, "/answers?group=question&window=24h&route=docs-search")

    assert summary is not None
    assert "95% interval" in summary[0]
    assert f"n={count_in(row)}" in summary[0]
    assert summary[0] in page.get(link_in(row), headers=HTML).text
    assert f"(n={count_in(few)}, need 20)" in few


def test_groups_from_a_biased_selection_have_no_mean(page: TestClient) -> None:
    """A filter by score or label would make the mean meaningless."""
    for query in ("below=0.5", "low=1", "refusals=hide", "labeled=yes"):
        text = page.get(f"/answers?group=question&{query}", headers=HTML).text

        assert "95% interval" not in text, query
        assert "Means are not shown" in text, query


@each("filters", ["&window=24h", "&window=24h&refusals=hide", "&window=24h&route=docs-search"])
def test_questions_with_the_most_low_answers_come_first(page: TestClient, week: Week, filters: str) -> None:
    """The column counts low answers among all answers, and its order is the default for the lowest scores."""
    listed = page.get(f"/answers.json?{filters}").json()["answers"]
    questions = {one.id: question_key(one.question or "") for one in week.seeded.exchanges}
    low = Counter(questions[row["exchange_id"]] for row in listed if row["label"] in {"irrelevant", "noncommittal"})
    rows = rows_of(page, f"/answers?group=question{filters}")
    cells = [re.sub(r"<[^>]+>", "", row[row.index('data-label="Low">') + 17 :].split("</td>")[0]) for row in rows]

    counts = [*sorted(low.values(), reverse=True), *[0] * len(rows)]
    assert [int(cell.split(" of ")[0]) for cell in cells] == counts[: len(rows)]
    assert [int(cell.split(" of ")[1]) for cell in cells] == [count_in(row) for row in rows]


def test_the_sort_order_of_questions_is_part_of_the_url(page: TestClient) -> None:
    """The headings link to the other orders, and state the current one."""
    text = page.get("/answers?group=question&order=mean", headers=HTML).text
    means = [float(mean) for mean in re.findall(r'<span class="mean"><b>([\d.]+)</b>', text[text.index("<tbody>") :])]

    assert len(means) > 10
    assert means == sorted(means)
    assert 'aria-sort="ascending"' in text
    assert 'href="/answers?group=question&amp;order=low"' in text
    assert page.get("/answers?group=question&order=size", headers=HTML).status_code == 400
    assert (
        'aria-sort="descending"><a href="/answers?sort=newest'
        in page.get("/answers?group=question&sort=newest", headers=HTML).text
    )


def test_a_truncated_list_of_groups_says_that_it_is_truncated(
    page: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page states how far back it searched, and how many questions are not listed."""
    monkeypatch.setattr(search, "MAX_QUESTIONS_COMPARED", 100)
    text = page.get("/answers?group=question", headers=HTML).text

    assert "Only the newest answers were searched, back to" in text
    assert sum(count_in(row) for row in rows_of(page, "/answers?group=question")) == 100
    assert "100 answers to" in text


@BOTH
def test_hostile_questions_are_escaped_and_their_answers_are_found(own_page: TestClient, own_week: Week) -> None:
    """Every group of hostile questions links to its answer, and the page stays small."""
    write_hostile_exchanges(own_week.store)
    address = "/answers?group=question&service=h%22ost%3Cile%3E"
    text = own_page.get(address, headers=HTML).text
    rows = rows_of(own_page, address)

    assert len(rows) > 10
    assert "<script>window" not in text
    assert len(text) < 200_000
    for row in rows:
        assert len(own_page.get(link_in(row).replace("/answers?", "/answers.json?")).json()["answers"]) == count_in(row)


def test_the_filter_form_keeps_the_grouping_by_question(page: TestClient) -> None:
    """Applying a filter groups the matching answers, and clearing the group shows the list."""
    text = page.get("/answers?group=question&route=ask", headers=HTML).text

    assert '<input type="hidden" name="group" value="question">' in text
    assert 'href="/answers?route=ask">Answers</a>' in text


def test_exported_files_of_a_group_contain_the_answers_of_the_group(page: TestClient) -> None:
    """The test set also contains exactly these answers, including refusals."""
    address = "/answers?group=question&window=24h"
    text = page.get(address, headers=HTML).text
    found = re.search(r'href="(/answers\.json\?[^"]+)"', text)
    assert found is not None
    answers = page.get(html.unescape(found[1])).json()["answers"]

    assert len(answers) == sum(map(count_in, rows_of(page, address)))
    assert any(answer["label"] == "noncommittal" for answer in answers)
    assert 'href="/answers.jsonl?window=24h&amp;scorer=answer_relevancy"' in text
