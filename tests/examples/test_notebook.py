"""The notebook in examples/ runs offline, and its stored outputs are current."""

from __future__ import annotations

import ast
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.examples.notebook import code_cells, execute, load

import germane

NOTEBOOK = Path(__file__).parents[2] / "examples" / "monitoring.ipynb"
NUMBER = re.compile(r"-?\d+\.\d+|\d+")
TOLERANCE = 0.05
"""Processors round the embedded model's numbers differently."""


def text_of(output: dict[str, Any]) -> str:
    """Return what a reader sees of an output."""
    return "".join(output["text"] if output["output_type"] == "stream" else output["data"]["text/plain"])


def test_notebook_is_readable_without_running_it() -> None:
    """Each cell has an id, and each code cell has run once, in order."""
    notebook = load(NOTEBOOK)
    identifiers = [cell["id"] for cell in notebook["cells"]]

    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len(set(identifiers)) == len(identifiers)
    assert [cell["execution_count"] for cell in code_cells(notebook)] == list(range(1, len(code_cells(notebook)) + 1))
    for cell in code_cells(notebook):
        ast.parse("".join(cell["source"]))


def test_stored_outputs_equal_those_of_a_new_run(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If this test fails after a change, run ``python tests/examples/notebook.py examples/monitoring.ipynb``."""
    if find_spec("onnxruntime") is None:
        pytest.skip("the local extra is not installed, and the notebook needs it")
    monkeypatch.setenv("NO_COLOR", "1")
    try:
        ran = execute(NOTEBOOK)
    finally:
        germane.stop()

    for cell, outputs in zip(code_cells(load(NOTEBOOK)), ran, strict=True):
        stored, new = ([text_of(output) for output in found] for found in (cell["outputs"], outputs))
        assert [NUMBER.sub("0", text) for text in stored] == [NUMBER.sub("0", text) for text in new], cell["id"]
        for before, after in zip(stored, new, strict=True):
            numbers = [[float(number) for number in NUMBER.findall(text)] for text in (before, after)]
            assert numbers[0] == pytest.approx(numbers[1], abs=TOLERANCE), cell["id"]
