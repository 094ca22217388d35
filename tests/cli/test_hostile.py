"""Hostile questions and answers in terminals and reports."""

from __future__ import annotations

import json
import re
import unicodedata
from contextlib import closing
from datetime import UTC, datetime

import pytest
from tests.cli.conftest import Call
from tests.dashboard.hostile import write_hostile_exchanges

from germane.storage import TrackingStore

_TAG = re.compile(r"<(?!/?(?:code|br|details|summary)\b)[a-zA-Z!/][^>]*>")


@pytest.fixture
def database(migrated_url: str) -> str:
    """A database of either kind with hostile text in every field."""
    with closing(TrackingStore(migrated_url)) as store:
        write_hostile_exchanges(store, datetime.now(UTC))
    return migrated_url


@pytest.mark.parametrize(
    "command",
    [
        ("worst", "-n", "20"),
        ("worst", "-n", "20", "--json"),
        ("trend", "--since", "24h"),
        ("trend", "--since", "24h", "--by", "route"),
        ("trend", "--since", "24h", "--by", "model", "--json"),
        ("report",),
        ("report", "--json"),
        ("report", "--format", "markdown"),
        ("report", "--format", "html"),
    ],
    ids=" ".join,
)
def test_hostile_text_does_not_control_the_terminal(call: Call, database: str, command: tuple[str, ...]) -> None:
    """The output contains no escape, bell or direction characters, and no lone surrogates."""
    ended = call(*command, "--database", database)
    steering = {one for one in ended.out + ended.err if unicodedata.category(one) in {"Cc", "Cs"}} - {"\n"}
    assert ended.code in {0, 5}
    assert ended.out
    assert steering == set()
    assert "\u202e" not in ended.out
    if "--json" in command:
        assert isinstance(json.loads(ended.out), dict)


def test_html_report_escapes_hostile_text(call: Call, database: str) -> None:
    """Scripts, handlers and external images become text, and the page's security policy forbids them."""
    page = call("report", "--format", "html", "--database", database).out
    assert "default-src 'none'" in page
    for markup in ("<script", "<img", 'onfocus="', "onload=alert(1)>", 'href="http'):
        assert markup not in page.replace("&lt;", ""), markup
    assert "&lt;script&gt;" in page


def test_markdown_report_escapes_hostile_text(call: Call, database: str) -> None:
    """The text creates no tags, links or table cells."""
    text = call("report", "--format", "markdown", "--database", database).out
    outside = re.sub(r"`+[^`]*`+", "", text)
    assert _TAG.findall(outside.replace("\\<", "")) == []
    assert not re.search(r"(?<!\\)\]\((?:javascript|http)", outside)
    tables = [part.splitlines() for part in text.split("\n\n") if part.startswith("|")]
    assert len(tables) == 3
    for header, *rows in tables:
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {header.count("|")}
