"""User-defined scorers with the name of a built-in scorer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

IN_MODULE = """
import germane

@germane.scorer
def context_coverage(exchange):
    return 0.123
"""
SCRIPT = """
import json, logging, sys
logging.basicConfig(level=logging.WARNING, stream=sys.stdout, format="%(message)s")
from germane.scorers import build_scorers
from germane.settings import load_settings
settings = load_settings(imports=["shop_scorers"] if sys.argv[1:] else [], scorers=["context_coverage"])
scorers = [build_scorers(settings).scorers[0] for _ in range(2)]
print(json.dumps([type(scorer).__module__ for scorer in scorers]))
"""


def run_python(folder: Path, *arguments: str) -> str:
    """Run Python with the folder on its path, and return its output."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GERMANE_", "OPENAI_"))}
    completed = subprocess.run(
        [sys.executable, *arguments],
        env=environment | {"PYTHONPATH": str(folder)}, cwd=folder, capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip
    assert "Traceback" not in completed.stderr, completed.stderr
    return completed.stdout


def install_plugin(folder: Path) -> None:
    """Install a distribution with an entry point that has the name of a built-in scorer."""
    information = folder / "shop_scorers-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: shop-scorers\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[germane.scorers]\ncontext_coverage = shop_scorers:missing\n")


@pytest.mark.slow
def test_a_scorer_with_a_built_in_name_can_be_imported_but_the_built_in_one_runs(tmp_path: Path) -> None:
    """One warning names both scorers and the fix. Building the scorers again logs no second warning."""
    (tmp_path / "shop_scorers.py").write_text(IN_MODULE)

    warning, modules = run_python(tmp_path, "-c", SCRIPT, "import").splitlines()

    assert warning == (
        "the scorer shop_scorers.context_coverage has the same name as the built-in scorer 'context_coverage' "
        "(germane.scorers.metrics.context_coverage), which is used instead; rename your scorer"
    )
    assert json.loads(modules) == ["germane.scorers.metrics.context_coverage"] * 2


@pytest.mark.slow
def test_an_entry_point_with_a_built_in_name_is_reported_but_not_loaded(tmp_path: Path) -> None:
    """The warning names the package."""
    install_plugin(tmp_path)

    warning, modules = run_python(tmp_path, "-c", SCRIPT).splitlines()

    assert warning.startswith("the scorer shop-scorers (shop_scorers:missing) has the same name as the built-in scorer")
    assert json.loads(modules) == ["germane.scorers.metrics.context_coverage"] * 2


@pytest.mark.slow
def test_doctor_reports_scorers_with_built_in_names(tmp_path: Path) -> None:
    """The conflict is reported as a warning with the fix."""
    install_plugin(tmp_path)

    output = run_python(tmp_path, "-m", "germane", "doctor", "--offline", "--json")

    conflicts = [finding for finding in json.loads(output)["findings"] if "built-in scorer" in finding["message"]]
    assert [(finding["subject"], finding["level"]) for finding in conflicts] == [("scorers", "warning")]
    assert conflicts[0]["fix"] == "rename the scorer shop-scorers (shop_scorers:missing)"


def test_passing_a_scorer_with_a_built_in_name_is_an_error(monkeypatch: pytest.MonkeyPatch, bare: Path) -> None:
    """A function passed as an object cannot refer to the built-in scorer."""
    from germane.errors import UsageError
    from germane.scorers import build_scorers
    from germane.settings import load_settings

    def context_coverage(exchange: object) -> float:
        return 0.5

    with pytest.raises(UsageError, match=r"has the same name as the built-in scorer 'context_coverage'.*rename"):
        build_scorers(load_settings(), [context_coverage])
