"""Static types of decorated functions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).parent / "typing_cases.py"


@pytest.mark.slow
def test_decorated_functions_keep_their_types(tmp_path: Path) -> None:
    """mypy infers the types that ``typing_cases.py`` asserts."""
    pytest.importorskip("mypy")
    arguments = ["--strict", "--follow-imports=silent", "--config-file=", f"--cache-dir={tmp_path}"]
    result = subprocess.run(
        [sys.executable, "-m", "mypy", *arguments, str(CASES)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )

    assert result.stdout.strip() == "Success: no issues found in 1 source file"
