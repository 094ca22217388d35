"""Checks that src has at most as many lines as .ci/size says. Run: python .ci/size.py

A commit that raises the number must say in its body why the code has to grow.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def git(*arguments: str) -> str:
    """Return what git prints; nothing without git, or for a commit that is missing in a shallow clone."""
    try:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def main() -> int:
    """Print what is wrong with the size, and return 1 if there is anything."""
    allowed = int((ROOT / ".ci" / "size").read_text(encoding="ascii"))
    lines = sum(path.read_bytes().count(b"\n") for path in (ROOT / "src").rglob("*.py"))
    if lines > allowed:
        print(f"src has {lines} lines, but .ci/size allows {allowed}: delete code, or raise the number and say why")
        return 1
    commit = git("log", "-1", "--format=%H", "--", ".ci/size")
    before, after = git("show", f"{commit}^:.ci/size"), git("show", f"{commit}:.ci/size")
    if before and int(before) < int(after) and not git("log", "-1", "--format=%b", commit):
        print(f"commit {commit[:10]} raises .ci/size from {before} to {after}, but its body does not say why")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
