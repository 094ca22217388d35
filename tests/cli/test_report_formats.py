"""Tests of reports in Markdown, HTML and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from tests.cases import each
from tests.cli.conftest import write

from germane.annotation import Marker
from germane.cli.commands.report import format_text
from germane.cli.commands.report.data import load_report
from germane.cli.core.output import Terminal, fit
from germane.storage import TrackingStore

Call = Callable[..., Any]
GOOD, BAD = [0.9, 0.8, 0.85] * 10, [0.3, 0.2, 0.25] * 10
HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(1)> ![x](http://evil.example/x.png) "
    "[y](javascript:alert(1)) | a |\n"
    "# heading\n</td></table>\x1b[2J\u202eabc \U0001f600\u5e97 =1+1 @everyone http://evil.example"
)


class Page(HTMLParser):
    """The contents of a page: tags, attributes, and text by tag."""

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
def week(store: TrackingStore) -> TrackingStore:
    """Three routes, one of which has been bad since a marker."""
    now = datetime.now(UTC)
    write(store, GOOD, started_at=now - timedelta(hours=30))
    write(store, GOOD, route="search", started_at=now - timedelta(hours=30))
    write(store, GOOD)
    write(store, BAD, route="search", answer="We are in Bern.")
    write(store, GOOD[:7], route="seldom")
    store.trends.add_markers([Marker(id="m1", name="index v42", service="shop", at=now - timedelta(hours=25))])
    return store


def test_an_html_report_is_self_contained(call: Call, week: TrackingStore, bare: Path) -> None:
    """The file has a verdict, table, charts, worst answers and comparison, but no scripts or external resources."""
    file = bare / "report.html"

    ended = call("report", "--format", "html", "--since", "mark", "--output", str(file))

    page = Page(text := file.read_text(encoding="utf-8"))
    assert (ended.code, ended.out, ended.err) == (0, "", f"Wrote {file}.\n")
    assert "1 of 3 routes got worse: relevancy fell on search" in page.text
    assert "Significant drop: search, answer_relevancy" in page.text
    assert "not enough data (need 20)" in page.text
    assert "We are in Bern." in page.text
    assert page.tags.count("svg") >= 2
    assert not {"script", "link", "iframe", "object", "form", "a", "img"} & set(page.tags)
    assert not [value for name, value in page.attributes if name in {"href", "src", "style"} or name.startswith("on")]
    assert "default-src 'none'" in text
    assert "prefers-color-scheme" in text or "light dark" in text
    assert not re.findall(r"url\(|@import|https?://(?!www\.w3\.org)", text)


def test_a_markdown_report_has_the_same_content(call: Call, week: TrackingStore) -> None:
    """The report is printed by default. md is short for markdown."""
    long, short = call("report", "--format", "markdown", "--compare"), call("report", "--format", "md", "--compare")

    assert (long.code, long.err) == (0, "")
    assert long.out.startswith("# germane report\n\n**1 of 3 routes got worse\\: relevancy fell on search.")
    assert "| ask | answer\\_relevancy | 30 | 0.850 | 0.752 to 0.866 |" in long.out
    assert "## Worst answers by answer\\_relevancy" in long.out
    assert "## Before and after" in long.out
    trend = long.out.partition("## Answer relevancy for shop\n\n")[2].split("\n\n")[0].splitlines()
    assert trend[0] == "| from (UTC) | n | mean | 95% interval | low | refused | fingerprint |"
    assert re.match(r"\| 20\d\d-.* \| 67 \| 0.582 \| ", trend[2])
    assert short.out.splitlines()[0] == long.out.splitlines()[0]


def test_the_json_option_is_equivalent_to_the_json_format(call: Call, week: TrackingStore, bare: Path) -> None:
    """`--json` with another format is a usage error."""
    plain = call("report", "--json", "--since", "2d").content
    named = call("report", "--format", "json", "--since", "2d", "-o", "r.json")

    written = json.loads((bare / "r.json").read_text())
    assert named.code == 0
    assert {**written, "since": "", "until": ""} == {**plain, "since": "", "until": ""}
    refused = call("report", "--json", "--format", "html")
    assert (refused.code, refused.out) == (2, "")


def test_a_text_report_can_be_written_to_a_file(call: Call, week: TrackingStore, bare: Path) -> None:
    """The file has the same content as the printed report."""
    shown = call("report", "--since", "2026-01-01T00:00:00Z").out
    call("report", "--since", "2026-01-01T00:00:00Z", "--output", "r.txt")

    assert (bare / "r.txt").read_text() == shown


@pytest.mark.slow
@each("kind", ["text", "markdown", "html", "json"])
def test_exit_codes_do_not_depend_on_the_report_format(call: Call, week: TrackingStore, kind: str) -> None:
    """The exit code is 3 for a violated threshold or a drop, and 5 for too little data."""
    assert call("report", "--format", kind, "--fail-under", "0.5").code == 3
    assert call("report", "--format", kind, "--since", "mark", "--fail-on-drop").code == 3
    assert call("report", "--format", kind, "--route", "seldom", "--fail-under", "0.5").code == 5


@each("kind", ["text", "markdown", "html"])
def test_an_empty_report_is_valid_in_every_format(call: Call, database: str, kind: str) -> None:
    """An empty database is not an error."""
    ended = call("report", "--format", kind)

    assert ended.code == 0
    assert "No scores." in ended.out


def test_html_reports_escape_captured_text(call: Call, store: TrackingStore) -> None:
    """Texts of any length and names create no tags, attributes or text directions."""
    write(store, BAD, question=HOSTILE, answer=HOSTILE * 500, route=HOSTILE[:200], scorer="answer_relevancy")
    store.trends.add_markers(
        [Marker(id="m1", name=HOSTILE, service="shop", at=datetime.now(UTC) - timedelta(minutes=2))]
    )

    ended = call("report", "--format", "html", "--since", "2h", "--compare")

    page = Page(ended.out)
    assert ended.code == 0
    assert not {"script", "img", "a"} & set(page.tags)
    assert "<script>alert(1)" in page.text
    assert not [value for name, value in page.attributes if name in {"href", "src"} or name.startswith("on")]
    assert "\x1b" not in ended.out
    assert "\u202e" not in Page(ended.out.partition("<figure")[2].partition("</figure>")[0]).text
    assert len(ended.out) < 300_000


def test_markdown_reports_escape_captured_text(call: Call, store: TrackingStore) -> None:
    """The text creates no tags, images, links, headings or table cells."""
    write(store, BAD, question=HOSTILE, answer=HOSTILE * 500, route=HOSTILE[:200])
    store.trends.add_markers(
        [Marker(id="m1", name=HOSTILE, service="shop", at=datetime.now(UTC) - timedelta(minutes=2))]
    )

    ended = call("report", "--format", "md", "--since", "2h", "--compare")

    assert ended.code == 0
    assert not re.findall(r"(?<!\\)<|(?<!\\)!\[|(?<!\\)\]\(|https?://", ended.out)
    assert "\x1b" not in ended.out
    assert "\u202e" not in ended.out
    headings = [line for line in ended.out.splitlines() if line.startswith("#")]
    assert headings[0] == "# germane report"
    assert "# heading" not in headings
    rows = [line for line in ended.out.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {8, 9}
    assert len(ended.out) < 40_000


def test_an_unwritable_report_file_is_reported(call: Call, database: str) -> None:
    """The error states the cause, without a traceback."""
    ended = call("report", "--output", "/nowhere/at/all/r.html", "--format", "html")

    assert ended.code == 1
    assert "cannot write" in ended.err


def test_a_report_fits_the_width_of_the_terminal(week: TrackingStore) -> None:
    """There is one table per scorer, no line is wider than the terminal, and wide characters are aligned."""
    write(week, GOOD, route="\u5e97\u8217" * 4, scorer="a_scorer_with_quite_a_long_name")

    report = load_report(week, datetime.now(UTC) - timedelta(hours=2), service=None, route=None)
    text = format_text(report, "Relevancy is steady.", Terminal(is_interactive=True))

    lines = text.splitlines()
    assert all(fit(line, 80).rstrip() == line for line in lines)
    assert "answer_relevancy" in lines
    wide = next(line for line in lines if line.startswith("\u5e97"))
    heading = lines[lines.index(wide) - 1]
    assert cell_len(wide) == cell_len(heading)


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("r.html", "<!doctype html>"),
        ("r.HTM", "<!doctype html>"),
        ("r.md", "# germane report"),
        ("r.markdown", "# germane report"),
        ("r.json", '{"schema_version": 1'),
        ("r.txt", "1 of 3 routes "),
        ("report", "1 of 3 routes "),
        ("r.log", "1 of 3 routes "),
    ],
)
@pytest.mark.parametrize("format_", [None, "markdown"])
def test_the_file_extension_determines_the_report_format(
    call: Call, week: TrackingStore, bare: Path, name: str, start: str, format_: str | None
) -> None:
    """The extension determines the format, unless --format is given."""
    ended = call("report", "-o", name, *(["--format", format_] if format_ else []))

    assert ended.code == 0
    assert (bare / name).read_text(encoding="utf-8").startswith("# germane report" if format_ else start)


@each("arguments", [[], ["--since", "12h"], ["--compare"]])
def test_a_text_report_begins_with_the_verdict_of_the_overview(
    call: Call, week: TrackingStore, arguments: list[str]
) -> None:
    """The first line is the verdict, which is the same in HTML and text."""
    text, html = call("report", *arguments), call("report", "--format", "html", *arguments)

    verdict = " ".join(text.out.partition("\n\n")[0].split())
    assert verdict.startswith("1 of 3 routes got worse: relevancy fell on search.")
    assert verdict.rstrip(".") in unescape(" ".join(re.sub(r"<[^>]+>", "", html.out).split()))


def test_a_comparison_fits_80_columns(call: Call, week: TrackingStore) -> None:
    """Lines fit 80 columns, whether or not the output is piped."""
    ended = call("report", "--compare")

    assert ended.out.count("before (n)") >= 1
    assert [line for line in ended.out.splitlines() if cell_len(line) > 80] == []


def test_identical_worst_answers_are_listed_once_in_a_report(call: Call, store: TrackingStore) -> None:
    """The list shows how many there are. The same answer to a different question has its own line."""
    write(store, [0.1] * 4, question="Where are you?", answer="We are in Bern.")
    write(store, [0.1], question="Who are you?", answer="We are in Bern.")
    write(store, [0.9] * 20)

    report, listed = call("report", "--format", "markdown").out, call("worst", "-n", "2").out

    assert report.count("We are in Bern") == 2
    assert "| 0.10, 4 times | Where are you? |" in report
    assert listed.count("We are in Bern.") == 2
    assert "also      3 more answers with the same text" in listed
