"""Checks that no function makes more than 20 decisions. Run: python .ci/complexity.py

ruff counts statements, but a decision can also hide in an expression. Here, each of these counts as one: if, elif, a
conditional expression, for, while, except, case, each further operand of and/or, and each loop and condition of a
comprehension. One more is added for the function itself. Decisions of nested functions count for the outer one too. An
assertion is no decision: there is no other way through the function.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

LIMIT = 20
ROOT = Path(__file__).parents[1]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case)


def complexity(function: ast.AST) -> int:
    """Return one more than the number of decisions in a function."""
    total, pending = 1, [*ast.iter_child_nodes(function)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.ClassDef):  # whose methods are functions of their own
            continue
        pending += ast.iter_child_nodes(node)
        if isinstance(node, _BRANCHES):
            total += 1
        elif isinstance(node, ast.BoolOp):
            total += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            total += 1 + len(node.ifs)
    return total


def main() -> int:
    """Print every function over the limit, and return 1 if there is any."""
    found = [
        (complexity(node), f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}")
        for path in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, _FUNCTIONS)
    ]
    violations = sorted(((number, place) for number, place in found if number > LIMIT), reverse=True)
    for number, place in violations:
        print(f"{place}: complexity {number}, at most {LIMIT}")
    return int(bool(violations))


if __name__ == "__main__":
    sys.exit(main())
