"""Retired names do not remain as identifiers, columns, metrics, command-line options or labels."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.packaging.conftest import ROOT

import germane
from germane.cli.app import group
from germane.storage.db.models import metadata

SOURCES = ROOT / "src" / "germane"
CLASSES = {
    "Allowed", "Attempts", "Crowd", "Desk", "Gathering", "Grant", "Hindsight", "Holder", "Inquiry", "Lane", "Lookout",
    "Maker", "Manner", "Mark", "Material", "Office", "Orphaned", "Outlook", "Overall", "Part", "Past", "Patience",
    "Pause", "Post", "Presence", "Prospect", "Pulse", "Reason", "Refusal", "Rehearsed", "Room", "Seals", "Sheet",
    "Shelf", "Spent", "Teller", "Threads", "Told", "Trouble", "Turn", "Turns", "Voice", "Workbench",
}  # fmt: skip
FUNCTIONS = {
    "beat", "consider", "dismiss", "draw_of", "freeze", "give_up_learning", "harmless", "hold", "hushed",
    "learn_anew", "pass_over", "pick", "record", "say_once", "supersede", "tame",
}  # fmt: skip
ATTRIBUTES = {"capture_limit", "false_alarms_per_year", "false_alarms", "max_hold", "noncommittal_votes", "trend_by"}
TABLES = {"arrival", "mark", "rollup_due"}
COLUMNS = {"draw", "tries", "w", "ww", "wx", "wxx", "wxy", "wy", "wyy", "wwy", "wwyy", "v", "vv", "vx", "vxx"}
COMMANDS = {"accept", "dead", "power", "preview", "roll"}
OPTIONS = {"--grace", "--host-name", "--retry-for", "--until-empty"}
METRICS = re.compile(
    r"\brag\.(capture|evaluation)\b|\brag_(capture|evaluation)_|germane_(left_out|spent_today_dollars|score_mean_(lower|upper))\b"
)
LABELS = {
    "At work", "Beside the dearest day", "I know of it", "It is over", "Put off", "Tell nobody for a while",
    "fell silent", "This is the new normal", "tried in vain", "What judging took", "What waits", "Who says so",
}  # fmt: skip


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Yield the syntax tree of every module."""
    for path in sorted(SOURCES.rglob("*.py")):
        yield str(path.relative_to(SOURCES)), ast.parse(path.read_text(encoding="utf-8"))


def commands(group: click.Command, path: str = "germane") -> Iterator[tuple[str, click.Command]]:
    yield path, group
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            yield from commands(command, f"{path} {name}")


def test_no_class_function_or_attribute_has_a_retired_name() -> None:
    """The code can be found by searching for the standard term."""
    left = []
    for module, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name in CLASSES:
                left.append(f"{module}: class {node.name}")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in FUNCTIONS:
                left.append(f"{module}: def {node.name}")
            elif isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES:
                left.append(f"{module}: .{node.attr}")
            elif isinstance(node, ast.arg | ast.keyword) and node.arg in ATTRIBUTES:
                left.append(f"{module}: {node.arg}=")
    assert left == []


def test_no_table_or_column_has_a_retired_name() -> None:
    """The schema uses the same terms as the documentation."""
    assert metadata.tables.keys() & TABLES == set()
    assert [f"{table}.{column.name}" for table in metadata.tables.values() for column in table.columns
            if column.name in COLUMNS] == []  # fmt: skip


def test_no_command_or_option_has_a_retired_name() -> None:
    """``--help`` lists only current names."""
    found = dict(commands(group))

    assert [path for path in found if path.split()[-1] in COMMANDS and path != "germane baseline accept"] == []
    options = {
        option
        for one in found.values()
        for parameter in one.get_params(click.Context(one))
        for option in parameter.opts
    }
    assert options & OPTIONS == set()


@pytest.mark.parametrize("kind", ["*.py", "*.html", "*.js", "*.json", "*.yaml"])
def test_no_metric_or_label_has_a_retired_name(kind: str) -> None:
    """Pages, metrics and dashboards show only current names."""
    left = []
    for path in SOURCES.rglob(kind):
        text = path.read_text(encoding="utf-8")
        left += [f"{path.relative_to(SOURCES)}: {match[0]}" for match in METRICS.finditer(text)]
        left += [f"{path.relative_to(SOURCES)}: {label}" for label in LABELS if label in text]
    assert left == []


def test_no_public_name_has_a_retired_name() -> None:
    """``germane.__all__`` contains none of the names from before the first release."""
    assert {"Holder", "Mark", "Reason", "Turn", "hold", "record"} & set(germane.__all__) == set()


@pytest.mark.slow
def test_the_search_for_retired_names_covers_the_whole_project() -> None:
    """A search that finds no modules would prove nothing."""
    assert len(list(modules())) > 200
    assert Path(SOURCES / "dashboard").is_dir()
