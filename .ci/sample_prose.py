"""Prints a random sample of the project's prose for review.

The sample holds 60 docstrings, 40 paragraphs of documents, 60 strings that users see and 40 names of tests.
The same seed prints the same sample of the same checkout.

    python .ci/sample_prose.py 1
"""

from __future__ import annotations

import ast
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SIZES = {"docstrings": 60, "paragraphs": 40, "strings": 60, "tests": 40}
SENTENCE = re.compile(r"[A-Za-z]{2,} [a-z]{2,}")
"""Two words in a row, the second in lower case: prose rather than a key or a piece of SQL."""
CODE = re.compile(r"^\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|WITH|[a-z_]+\.[a-z_]+\()|[<>{}]{2}|\\[bsdw]|\(\?")


def tracked(*patterns: str) -> list[Path]:
    """Return the tracked files that match Git pathspecs."""
    names = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in names.stdout.splitlines() if not (ROOT / name).is_symlink()]


def docstrings() -> Iterator[str]:
    """Yield the docstrings of the source with their places."""
    for path in tracked("src/germane/**.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if text := ast.get_docstring(node):
                yield f"{path.relative_to(ROOT)}: {getattr(node, 'name', 'module')}\n{text}"


def paragraphs() -> Iterator[str]:
    """Yield the paragraphs of the documents, without code, tables and headings."""
    for path in tracked("*.md", "docs/**.md"):
        text = re.sub(r"^(```|:::).*?^\1$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for block in re.split(r"\n\s*\n", text):
            if len(block.split()) > 8 and not block.lstrip().startswith(("#", "|", "<", "[")):
                yield f"{path.relative_to(ROOT)}\n{block.strip()}"


def strings() -> Iterator[str]:
    """Yield the texts of errors, of commands and of pages: strings of code outside docstrings, and templates' text."""
    for path in tracked("src/germane/**.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
        parts = {id(part) for node in joined for part in node.values}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                values = node.values
                text = "".join(str(v.value) if isinstance(v, ast.Constant) else "{...}" for v in values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts | documented:
                text = node.value
            else:
                continue
            if SENTENCE.search(text) and not CODE.search(text) and "prompts/" not in str(path):
                yield f"{path.relative_to(ROOT)}:{node.lineno}\n{text}"
    for path in tracked("src/germane/**.html"):
        text = re.sub(r"\{[%#].*?[%#]\}", "\n", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        text = re.sub(r"\{\{.*?\}\}", "{...}", text, flags=re.DOTALL)
        text = re.sub(r"<(script|style|svg).*?</\1>", "\n", text, flags=re.DOTALL)
        for line in re.sub(r"<[^>]*>", "\n", text, flags=re.DOTALL).splitlines():
            if re.search(r"[A-Za-z]{3}", line.replace("{...}", "")):
                yield f"{path.relative_to(ROOT)}\n{line.strip()}"


def tests() -> Iterator[str]:
    """Yield the names of the tests."""
    for path in tracked("tests/**.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield f"{path.relative_to(ROOT)}: {node.name}"


def main() -> None:
    """Print the sample, each entry with a number."""
    choose = random.Random(int(sys.argv[1]))
    for kind, source in zip(SIZES, (docstrings, paragraphs, strings, tests), strict=True):
        print(f"\n===== {kind}")
        for number, entry in enumerate(choose.sample(list(source()), SIZES[kind]), 1):
            print(f"\n[{kind[0]}{number}] {entry}")


if __name__ == "__main__":
    main()
