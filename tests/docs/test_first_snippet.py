"""The first program in the README prints scores without an API key or a server."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.blocks import BLOCKS, Block

PROGRAM = next(block for block in BLOCKS if block.page.name == "README.md" and block.language == "python")
OUTPUT = re.compile(r"^(\w+): (.+)$", re.MULTILINE)


def shown_after(program: Block) -> list[tuple[str, str]]:
    """Return the scores in the console block that follows a program."""
    console = next(
        block
        for block in BLOCKS
        if (block.page, block.language) == (program.page, "console") and block.number > program.number
    )
    return OUTPUT.findall(console.text)


@pytest.mark.slow
def test_the_first_program_in_the_readme_prints_the_scores_shown_there(bare: Path) -> None:
    """New users see scores of their own answers before they read on."""
    pytest.importorskip("onnxruntime", reason="needs germane[local]")
    (bare / "app.py").write_text(PROGRAM.text, encoding="utf-8")

    ended = subprocess.run([sys.executable, "app.py"], capture_output=True, text=True, timeout=120, check=True)

    printed, shown = dict(OUTPUT.findall(ended.stdout)), dict(shown_after(PROGRAM))
    assert list(printed) == list(shown)
    # The embedder's results differ between processors in the last digits.
    similarity = "question_answer_similarity"
    assert float(printed.pop(similarity)) == pytest.approx(float(shown.pop(similarity)), abs=0.02)
    assert printed == shown
