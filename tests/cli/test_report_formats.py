"""The report as a file: Markdown and HTML, for people who do not look at a terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from tests.cli.conftest import write

from germane.annotation import Mark
from germane.cli.commands.report import data as found
from germane.cli.commands.report import text as plain
from germane.cli.commands.report.data import Of
from germane.cli.core.terminal import Terminal, fitted
from germane.storage import Store

Call = Callable[..., Any]
GOOD, BAD = [0.9, 0.8, 0.85] * 10, [0.3, 0.2, 0.25] * 10
HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(1)> ![x](http://evil.example/x.png) "
    "[y](javascript:alert(1)) | a |\n"
    "# heading\n</td></table>\x1b[2J\u202eabc \U0001f600\u5e97 =1+1 @everyone http://evil.example"
)


class Page(HTMLParser):
    """What stands in a page: tags, attributes, and text by tag."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        if self.tags[-1:] != ["style"]:
            self.text += data


@pytest.fixture
def week(store: Store) -> Store:
    """Three routes, one of them bad since a mark."""
    now = datetime.now(UTC)
    write(store, GOOD, started_at=now - timedelta(hours=30))
    write(store, GOOD, route="search", started_at=now - timedelta(hours=30))
    write(store, GOOD)
    write(store, BAD, route="search", answer="We are in Bern.")
    write(store, GOOD[:7], route="seldom")
    store.add_marks([Mark(id="m1", name="index v42", service="shop", at=now - timedelta(hours=25))])
    return store


def test_html_is_one_file_with_pictures(call: Call, week: Store, bare: Path) -> None:
    """Sentence, table, chart, worst answers and comparison; no script, and nothing is asked for from outside."""
    file = bare / "report.html"

    ended = call("report", "--format", "html", "--since", "mark", "--output", str(file))

    page = Page(text := file.read_text(encoding="utf-8"))
    assert (ended.code, ended.out, ended.err) == (0, "", f"Wrote {file}.\n")
    assert "Relevancy fell on search" in page.text
    assert "Dropped for sure: search, answer_relevancy" in page.text
    assert "not enough data (n=7, need 20)" in page.text
    assert "We are in Bern." in page.text
    assert page.tags.count("svg") >= 2
    assert not {"script", "link", "iframe", "object", "form", "a", "img"} & set(page.tags)
    assert not [value for name, value in page.attributes if name in {"href", "src", "style"} or name.startswith("on")]
    assert "default-src 'none'" in text
    assert "prefers-color-scheme" in text or "light dark" in text
    assert not re.findall(r"url\(|@import|https?://(?!www\.w3\.org)", text)


def test_markdown_has_the_same(call: Call, week: Store) -> None:
    """For a pull request, or a chat: to stdout where no file is named; md is short for it."""
    long, short = call("report", "--format", "markdown", "--compare"), call("report", "--format", "md", "--compare")

    assert (long.code, long.err) == (0, "")
    assert long.out.startswith("# germane report\n\n**Relevancy fell on search.")
    assert "| ask | answer\\_relevancy | 30 | 0.850 | 0.752 to 0.866 |" in long.out
    assert "## Worst answers by answer\\_relevancy" in long.out
    assert "## Before and after" in long.out
    assert short.out.splitlines()[0] == long.out.splitlines()[0]


def test_json_is_the_alias_that_it_was(call: Call, week: Store, bare: Path) -> None:
    """`--json` and `--format json` are one; another format beside `--json` is wrong usage."""
    plain = call("report", "--json", "--since", "2d").content
    named = call("report", "--format", "json", "--since", "2d", "-o", "r.json")

    written = json.loads((bare / "r.json").read_text())
    assert named.code == 0
    assert {**written, "since": "", "until": ""} == {**plain, "since": "", "until": ""}
    refused = call("report", "--json", "--format", "html")
    assert (refused.code, refused.out) == (2, "")


def test_text_may_go_to_a_file_too(call: Call, week: Store, bare: Path) -> None:
    """With the same words as on a terminal."""
    shown = call("report", "--since", "2026-01-01T00:00:00Z").out
    call("report", "--since", "2026-01-01T00:00:00Z", "--output", "r.txt")

    assert (bare / "r.txt").read_text() == shown


@pytest.mark.parametrize("kind", ["text", "markdown", "html", "json"])
def test_exit_codes_do_not_depend_on_the_format(call: Call, week: Store, kind: str) -> None:
    """3 for a broken threshold and for a drop, 5 where there is not enough data."""
    assert call("report", "--format", kind, "--fail-under", "0.5").code == 3
    assert call("report", "--format", kind, "--since", "mark", "--fail-on-drop").code == 3
    assert call("report", "--format", kind, "--route", "seldom", "--fail-under", "0.5").code == 5


@pytest.mark.parametrize("kind", ["text", "markdown", "html"])
def test_without_any_score_it_says_so(call: Call, database: str, kind: str) -> None:
    """An empty database makes a report as well."""
    ended = call("report", "--format", kind)

    assert ended.code == 0
    assert "No scores." in ended.out


def test_answers_are_hostile_in_html(call: Call, store: Store) -> None:
    """No tag, no attribute and no direction of theirs: scripts, 100 kB, letters from the right; names as well."""
    write(store, BAD, question=HOSTILE, answer=HOSTILE * 500, route=HOSTILE[:200], scorer="answer_relevancy")
    store.add_marks([Mark(id="m1", name=HOSTILE, service="shop", at=datetime.now(UTC) - timedelta(minutes=2))])

    ended = call("report", "--format", "html", "--since", "2h", "--compare")

    page = Page(ended.out)
    assert ended.code == 0
    assert not {"script", "img", "a"} & set(page.tags)
    assert "<script>alert(1)" in page.text
    assert not [value for name, value in page.attributes if name in {"href", "src"} or name.startswith("on")]
    assert "\x1b" not in ended.out
    assert "\u202e" not in Page(ended.out.partition("<figure")[2].partition("</figure>")[0]).text
    assert len(ended.out) < 300_000


def test_answers_are_hostile_in_markdown(call: Call, store: Store) -> None:
    """They make no tag, no picture, no link, no heading and no cell of their own."""
    write(store, BAD, question=HOSTILE, answer=HOSTILE * 500, route=HOSTILE[:200])
    store.add_marks([Mark(id="m1", name=HOSTILE, service="shop", at=datetime.now(UTC) - timedelta(minutes=2))])

    ended = call("report", "--format", "md", "--since", "2h", "--compare")

    assert ended.code == 0
    assert not re.findall(r"(?<!\\)<|(?<!\\)!\[|(?<!\\)\]\(|https?://", ended.out)
    assert "\x1b" not in ended.out
    assert "\u202e" not in ended.out
    headings = [line for line in ended.out.splitlines() if line.startswith("#")]
    assert headings[0] == "# germane report"
    assert "# heading" not in headings
    rows = [line for line in ended.out.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {9}
    assert len(ended.out) < 40_000


def test_a_file_that_cannot_be_written_is_told(call: Call, database: str) -> None:
    """Cause, and no traceback."""
    ended = call("report", "--output", "/nowhere/at/all/r.html", "--format", "html")

    assert ended.code == 1
    assert "cannot be written" in ended.err


def test_on_a_terminal_it_fits(week: Store) -> None:
    """A table for each scorer, and no line wider than the screen; routes of wide letters stand in their columns."""
    write(week, GOOD, route="\u5e97\u8217" * 4, scorer="a_scorer_with_quite_a_long_name")

    text = plain.written(
        found.read(week, datetime.now(UTC) - timedelta(hours=2), Of(None, None)), Terminal(watched=True)
    )

    lines = text.splitlines()
    assert all(fitted(line, 80).rstrip() == line for line in lines)
    assert "answer_relevancy" in lines
    wide = next(line for line in lines if line.startswith("\u5e97"))
    heading = lines[lines.index(wide) - 1]
    assert cell_len(wide) == cell_len(heading)
