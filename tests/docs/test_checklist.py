"""The checklist names tests that exist."""

from __future__ import annotations

import ast
import re

from tests.cases import each
from tests.docs.blocks import DOCS, ROOT

TEXT = (DOCS / "contributing" / "checklist.md").read_text(encoding="utf-8")
POINTS = re.split(r"(?m)^## ", TEXT)[1:]
TESTS = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)


def test_the_checklist_has_twenty_points_in_order() -> None:
    """No number is missing."""
    assert [int(point.partition(".")[0]) for point in POINTS] == list(range(1, 21))


@each("point", POINTS)
def test_each_point_on_the_checklist_names_a_test(point: str) -> None:
    """Every point names at least one test."""
    assert re.search(r"`tests/[\w/]+\.py::\w+`", point)


@each("path", sorted({path for path, _ in TESTS}))
def test_each_test_on_the_checklist_exists(path: str) -> None:
    """Renaming a test requires an update of the page."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    there = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}

    assert {name for file, name in TESTS if file == path} - there == set()
