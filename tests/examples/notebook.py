"""Runs a notebook as Jupyter does: cells in one namespace, in a running event loop. Needs no Jupyter.

To store new outputs: python tests/examples/notebook.py examples/monitoring.ipynb
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

Output = dict[str, Any]
REPRESENTATIONS = {"text/html": "_repr_html_", "text/markdown": "_repr_markdown_"}


def load(path: Path) -> dict[str, Any]:
    """Return the content of a notebook."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the code cells, in order."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def execute(path: Path) -> list[list[Output]]:
    """Run the notebook in the current directory, and return the outputs of each code cell.

    Raises:
        Exception: What a cell raised.
    """
    sources = ["".join(cell["source"]) for cell in code_cells(load(path))]
    return asyncio.run(_execute(sources))


async def _execute(sources: list[str]) -> list[list[Output]]:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    return [await _run_cell(source, namespace, count) for count, source in enumerate(sources, 1)]


async def _run_cell(source: str, namespace: dict[str, Any], count: int) -> list[Output]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        await _evaluate(tree, "exec", namespace, count)
        if isinstance(last, ast.Expr):
            value = await _evaluate(ast.Expression(last.value), "eval", namespace, count)
    outputs: list[Output] = []
    if text := printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)})
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        for kind, method in REPRESENTATIONS.items():
            if shown := getattr(value, method, lambda: None)():
                data[kind] = shown.splitlines(keepends=True)
        outputs.append({"output_type": "execute_result", "execution_count": count, "data": data, "metadata": {}})
    return outputs


async def _evaluate(tree: Any, mode: str, namespace: dict[str, Any], count: int) -> Any:
    code = compile(tree, f"cell {count}", mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    value = eval(code, namespace)
    return await value if inspect.iscoroutine(value) else value


def main(path: Path) -> None:
    """Run the notebook in an empty directory, and store its outputs."""
    notebook = load(path)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.environ.update({"NO_COLOR": "1"})
        outputs = execute(path)
    for count, (cell, found) in enumerate(zip(code_cells(notebook), outputs, strict=True), 1):
        cell["execution_count"], cell["outputs"] = count, found
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
