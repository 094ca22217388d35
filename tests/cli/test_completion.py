"""Tests of shell completion."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cases import each

pytestmark = pytest.mark.slow

Call = Callable[..., Any]
COMPLETED = """
source {script}
COMP_WORDS=({words}); COMP_CWORD={at}
_germane_completion germane
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@each("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_completion_script(call: Call, shell: str) -> None:
    """The variable that requests completions is not taken for a setting."""
    if shell == "bash" and shutil.which("bash") is None:
        pytest.skip("bash is not installed, and its version matters")
    ended = call("completion", shell)

    assert (ended.code, ended.err) == (0, "")
    assert f"_GERMANE_COMPLETE={shell}_complete" in ended.out


def test_an_unsupported_shell_is_a_usage_error(call: Call) -> None:
    """The error lists the supported shells."""
    ended = call("completion", "tcsh")

    assert (ended.code, ended.out) == (2, "")
    assert "bash" in ended.err


@pytest.mark.parametrize(
    ("words", "at", "completed"),
    [
        ("germane rep", 1, {"report"}),
        ("germane db ", 2, {"check", "rollup", "upgrade", "vacuum"}),
        ("germane report --fail-", 2, {"--fail-under", "--fail-on-drop"}),
    ],
)
def test_bash_completes_commands_and_options(call: Call, bare: Path, words: str, at: int, completed: set[str]) -> None:
    """The script is loaded into a real shell."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    (bare / "completion.bash").write_text(call("completion", "bash").out)
    command = bare / "germane"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m germane "$@"\n')
    command.chmod(0o755)
    words += ' ""' if words.endswith(" ") else ""
    script = COMPLETED.format(script=bare / "completion.bash", words=words, at=at)
    (bare / "ask.bash").write_text(script)

    ended = subprocess.run(
        [bash, "--norc", str(bare / "ask.bash")],
        env={**os.environ, "PATH": f"{bare}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert set(ended.stdout.split()) == completed, ended.stderr
