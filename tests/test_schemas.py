"""The documented JSON schemas."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator
from tests.cases import each
from tests.docs.blocks import DOCS
from tests.schemas import FOLDER, check, load, schema_of, strict

NAMES = sorted(str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.rglob("*.json"))
PAYLOADS = [
    (path.stem, title, payload)
    for path in sorted((DOCS / "payloads").glob("*.json"))
    for title, payload in json.loads(path.read_text(encoding="utf-8")).items()
]


@each("name", NAMES)
def test_each_documented_schema_is_valid(name: str) -> None:
    """Each names the version of JSON Schema that it uses, and says what it describes."""
    schema = load(name)

    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    assert schema["title"]


def test_readers_may_get_fields_that_a_published_schema_does_not_have() -> None:
    """Only the tests reject them, so that every new field is documented."""
    mark = {"schema_version": 1, "marker": {"id": "1", "name": "v2", "service": "", "at": "2026-03-01T12:00:00Z"}}
    mark["marker"] |= {"attributes": {}, "undocumented": 1}  # type: ignore[operator]  # a dict of several types

    Draft202012Validator(load("cli/mark")).validate(mark)
    with pytest.raises(AssertionError, match="undocumented"):
        check(mark, "cli/mark")


@each(
    ("arguments", "name"),
    [
        ("report --since 1h --json", "cli/report"),
        ("alerts --json --undelivered", "cli/alerts-undelivered"),
        ("alerts show a1 --json", "cli/alerts-show"),
        ("baseline show --json", "cli/baseline-show"),
        ("score rows.jsonl --estimate --json", "cli/score-estimate"),
        ("db check --json", "cli/db"),
    ],
)
def test_the_schema_of_an_output_follows_from_the_command_line(arguments: str, name: str) -> None:
    """Other options and arguments do not matter."""
    assert schema_of(arguments.split()) == name


def test_strict_schemas_reject_undocumented_fields_at_every_depth() -> None:
    """Objects whose keys are data stay open."""
    schema = strict({"properties": {"a": {"items": {"properties": {}}}, "b": {"additionalProperties": {}}}})

    assert schema["properties"]["a"]["items"] == {"properties": {}, "additionalProperties": False}
    assert schema["properties"]["b"] == {"additionalProperties": {}}


@each(("channel", "title", "payload"), PAYLOADS)
def test_each_documented_payload_is_valid(channel: str, title: str, payload: object) -> None:
    """The receiver accepts it, or, for webhooks, it has germane's own format."""
    check(payload, channel)


def test_there_are_payloads_of_each_channel_in_five_scenarios() -> None:
    """The scenarios are those on the page about messages."""
    channels = {name for name in NAMES if "/" not in name}
    titles = {title for _, title, _ in PAYLOADS}

    assert len(titles) == 5
    assert {(channel, title) for channel, title, _ in PAYLOADS} == {(one, each) for one in channels for each in titles}
