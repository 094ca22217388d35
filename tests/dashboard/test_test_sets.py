"""Test sets: downloaded answers are scored by ``germane score`` without changes."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient
from tests.cases import each
from tests.dashboard.conftest import BOTH, Week
from tests.dashboard.hostile import TEXTS, write_hostile_exchanges
from tests.dashboard.seeding import SEARCH

from germane.annotation import Feedback, mean_label
from germane.dashboard.pages import test_sets
from germane.evaluation.rows import read_rows
from germane.exchange import Context, Exchange, Message
from germane.storage import Answer
from germane.testing import FakeJudge

HTML = {"Accept": "text/html"}


def rows_of(response: httpx2.Response) -> list[dict[str, Any]]:
    """Return the rows of a downloaded file."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in response.text.splitlines()]


def score(file: Path, *options: str) -> dict[str, Any]:
    """Score a file with the command, in a process of its own, and a fake judge that runs on a port."""
    with FakeJudge() as judge:
        variables = {f"GERMANE_{name.upper()}": str(value) for name, value in judge.settings().items()}
        command = [sys.executable, "-m", "germane", "score", str(file), "--json", *options]
        ended = subprocess.run(
            command, env={**os.environ, **variables}, cwd=file.parent, capture_output=True, text=True, check=False
        )
    assert ended.returncode == 0, ended.stderr
    content: dict[str, Any] = json.loads(ended.stdout)
    return content


@pytest.mark.slow
def test_a_downloaded_test_set_can_be_scored_by_the_score_command(page: TestClient, tmp_path: Path) -> None:
    """Every row of the file is scored by a judge over HTTP."""
    file = tmp_path / "answers.jsonl"
    file.write_text(page.get(f"/answers.jsonl?route={SEARCH}&window=24h&below=0.5").text, encoding="utf-8")
    count = len(file.read_text(encoding="utf-8").splitlines())
    result = score(file, "--scorer", "answer_relevancy")

    assert count > 20
    assert result["rows"] == count
    assert result["summary"][0]["n"] == count


def test_rows_of_a_test_set_are_the_answers_of_the_list(page: TestClient, week: Week) -> None:
    """They have the same order, with texts, contexts, score and label."""
    query = f"route={SEARCH}&window=24h"
    written = page.get(f"/answers.jsonl?{query}")
    rows, texts = rows_of(written), list(read_rows([json.loads(line) for line in written.text.splitlines()]))
    listed = page.get(f"/answers.json?{query}").json()["answers"]
    exchanges = {one.id: one for one in week.seeded.exchanges}

    assert [row["id"] for row in rows] == [row["exchange_id"] for row in listed if row["answer"] is not None]
    by_id = {row["exchange_id"]: row for row in listed}
    for row, text in zip(rows, texts, strict=True):
        exchange, answer = exchanges[row["id"]], by_id[row["id"]]
        assert (text.exchange.question, text.exchange.answer) == (exchange.question, exchange.answer)
        assert row["route"] == SEARCH
        assert [context["text"] for context in row["contexts"]] == [one.text for one in exchange.contexts]
        assert (row["scorer"], row["score"], row["score_label"]) == (
            "answer_relevancy", answer["value"], answer["label"],
        )  # fmt: skip
        assert ("label" in row) == bool(answer["labels"])


@BOTH
def test_answers_without_text_are_omitted_from_a_test_set_and_counted(own_page: TestClient, own_week: Week) -> None:
    """The name of the file and its headers state the number; without any text, there is no file."""
    exchanges = own_week.seeded.exchanges
    own_week.store.retention.prune(texts_before=exchanges[len(exchanges) // 2].started_at)
    ids = [exchanges[index].id for index in (0, 1, -30)]
    query = "&".join(["state=any", *(f"id={id_}" for id_ in ids)])
    response = own_page.get(f"/answers.jsonl?{query}")
    none = own_page.get(f"/answers.jsonl?state=any&id={ids[0]}", headers=HTML)

    assert [row["id"] for row in rows_of(response)] == ids[2:]
    assert 'filename="test-set-1-row-2-left-out.jsonl"' in response.headers["content-disposition"]
    assert (response.headers["x-germane-rows"], response.headers["x-germane-left-out"]) == ("1", "2")
    assert none.status_code == 409
    assert "erased or not stored" in none.text


def test_a_truncated_test_set_has_a_different_file_name(page: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with the first answers only has another name."""
    whole = page.get("/answers.jsonl?window=24h")
    monkeypatch.setattr(test_sets, "MAX_ROWS", 30)
    part = page.get("/answers.jsonl?window=24h")

    assert whole.headers["x-germane-complete"] == "true"
    assert part.headers["x-germane-complete"] == "false"
    assert re.search(r"test-set-\d+-rows(-\d+-left-out)?-of-more\.jsonl", part.headers["content-disposition"])
    assert rows_of(part) == rows_of(whole)[: len(rows_of(part))]
    assert int(part.headers["x-germane-rows"]) + int(part.headers["x-germane-left-out"]) == 30


@each("path", ["/", f"/r/{SEARCH}", "/alerts/{alert}"])
def test_lists_of_worst_answers_can_be_downloaded_as_a_test_set(page: TestClient, week: Week, path: str) -> None:
    """The file contains the listed answers, and the link to copy lists them at any later time."""
    text = page.get(path.format(alert=week.seeded.open_alert), headers=HTML).text
    found = re.search(r'href="(/answers\.jsonl\?id=[^"]+)"', text)
    copied = re.search(r'data-copy="(/answers\?id=[^"]+)"', text)
    assert found is not None
    assert copied is not None
    saved = [row["id"] for row in rows_of(page.get(html.unescape(found[1])))]
    listed = re.findall(r'href="/a/([0-9a-f]+)[^"]*" data-drawer', text)

    assert sorted(saved) == sorted(set(listed))
    shown = re.findall(r'name="id" value="([^"]+)"', page.get(html.unescape(copied[1]), headers=HTML).text)
    assert sorted(shown) == sorted(set(listed))


def test_hostile_texts_in_a_test_set_are_unchanged_after_scoring(
    own_page: TestClient, own_week: Week, tmp_path: Path
) -> None:
    """The command reads every text as it was stored, one row per line."""
    stored = own_week.store.answers.get_exchanges([one.id for one in write_hostile_exchanges(own_week.store)])
    file = tmp_path / "hostile.jsonl"
    file.write_text(own_page.get("/answers.jsonl?service=h%22ost%3Cile%3E").text, encoding="utf-8")
    read = {row.exchange.id: row.exchange for row in read_rows(str(file))}

    assert len(read) == len(TEXTS)
    for id_, exchange in read.items():
        original = stored[id_]
        assert (exchange.question, exchange.answer) == (original.question, original.answer)
        assert exchange.contexts == original.contexts
        assert exchange.route == original.route


@each(
    "text",
    [
        *('[{"role": "user", "content": "hi"}]', '[{"a": 1}]', " [{", "['x']", "{}", "", "7", "null", '{"text": "a"}'),
        *("nan", "Document(page_content='a')", "b'a'", "<Response [200]>", "content='a'", "dict(a=1)", "{'a': 'b"),
    ],
)
def test_texts_in_a_test_set_are_never_read_as_data(text: str, tmp_path: Path) -> None:
    """A question, an answer or a context that looks like data is read as text, after earlier messages."""
    history = (Message("user", "Hello"), Message("assistant", "[{"))
    contexts = (Context("one", "id", 0.5), Context("[1, 2]"), *([Context(text)] if text else []))
    for question, answer in ((text, "A."), ("Q?", text)):
        exchange = replace(Exchange.from_texts(question, answer, history=history), contexts=contexts)
        file = tmp_path / "rows.jsonl"
        file.write_text(json.dumps(test_sets.as_row(Answer(exchange=exchange, score=None, task=None))), "utf-8")
        (row,) = read_rows(str(file))

        assert (row.exchange.question, row.exchange.answer) == (question, answer)
        assert (row.exchange.history, row.exchange.contexts) == (history, contexts)


@each(
    ("labels", "mean"),
    [
        ([("ada", 1.0)], 1.0),
        ([("ada", 1.0), ("ada", 0.0)], 0.0),
        ([("ada", 1.0), ("bo", 0.0)], 0.5),
        ([(None, 1.0), (None, 1.0), ("ada", 0.25)], 0.75),
    ],
)
def test_the_label_in_a_test_set_is_the_mean_of_the_latest_label_of_each_person(
    week: Week, labels: Sequence[tuple[str | None, float]], mean: float
) -> None:
    """Labels without a name count as labels from different people."""
    given = [
        Feedback(
            id=str(index),
            exchange_id="e",
            score=value,
            user=user,
            created_at=week.seeded.now + timedelta(seconds=index),
        )
        for index, (user, value) in enumerate(labels)
    ]

    assert mean_label(given) == mean
