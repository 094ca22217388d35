"""Installation commands in error messages, and unsupported Python versions."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import germane
from germane.installation import install_command

ROOT = Path(__file__).parents[2]
REQUIRES = 'Requires-Dist: onnxruntime>=1.20; extra == "local"\nRequires-Dist: click>=8.4\n'


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        (None, "pip install 'germane[local]'"),
        ({"url": "file://{here}", "dir_info": {}}, "pip install '{here}[local]'"),
        ({"url": "file://{here}", "dir_info": {"editable": True}}, "pip install -e '{here}[local]'"),
        ({"url": "file:///nowhere/germane", "dir_info": {}}, "pip install 'onnxruntime>=1.20'"),
        (
            {"url": "https://git.example.com/germane", "vcs_info": {"vcs": "git", "commit_id": "4f2a"}},
            "pip install 'germane[local] @ git+https://git.example.com/germane'",
        ),
        (
            {"url": "https://example.com/germane.whl", "archive_info": {}},
            "pip install 'germane[local] @ https://example.com/germane.whl'",
        ),
        ([], "pip install 'germane[local]'"),
    ],
)
def test_the_suggested_command_installs_an_extra_from_the_source_of_germane(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, origin: object, expected: str
) -> None:
    """The source is a clone, a file, a repository or the index. If it is gone, the extra's packages are suggested."""
    information = tmp_path / "germane-9.9.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.4\nName: germane\nVersion: 9.9\n{REQUIRES}")
    if origin is not None:
        (information / "direct_url.json").write_text(json.dumps(origin).replace("{here}", str(tmp_path)))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    assert install_command("local") == expected.replace("{here}", str(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("version", [(3, 8, 10), (3, 9, 2), (3, 10, 12)])
def test_an_unsupported_python_version_is_rejected_with_one_sentence(version: tuple[int, int, int]) -> None:
    """The error names the required version, instead of being caused by syntax or a missing name."""
    source = Path(germane.__file__ or "").read_text(encoding="utf-8")
    ast.parse(source, feature_version=version[:2])
    program = f"import sys; sys.version_info = (*{version}, 'final', 0); import germane"

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    last = ended.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: germane needs Python 3.11 or newer, but this is Python 3.{version[1]} (")


@pytest.mark.skipif(not (ROOT / ".packaging").is_dir(), reason="needs the sources")
def test_a_build_with_an_unsupported_python_version_ends_with_one_sentence() -> None:
    """The pip of Python 3.10 would otherwise download dependencies for minutes before it compares the versions."""
    backend = str(ROOT / ".packaging" / "backend.py")
    program = f"import runpy, sys; sys.version_info = (3, 10, 13); runpy.run_path({backend!r})"

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1
    assert ended.stderr.startswith("germane needs Python 3.11 or newer, and this is Python ")
