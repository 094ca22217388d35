"""The files in deploy/ and .github/, and the programs that check them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = DEPLOY / "compose"
KUBERNETES = DEPLOY / "kubernetes"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SCRIPTS = sysconfig.get_path("scripts")


def load(path: Path) -> Any:
    """Return the content of a YAML file with one document."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def program(name: str) -> str:
    """Return the path of a program. Skips the test if it is not installed."""
    path = os.pathsep.join([SCRIPTS, os.environ.get("PATH", "")])
    return shutil.which(name, path=path) or pytest.skip(f"{name} is not installed")


def run(*command: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program, and return its result."""
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=120, check=False, **options)


def check_schema(name: str, path: Path) -> None:
    """Check a file against a schema that check-jsonschema ships."""
    pytest.importorskip("check_jsonschema", reason="check-jsonschema is not installed")
    ended = run(sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{name}", path)

    assert ended.returncode == 0, ended.stdout + ended.stderr
