"""Built-in scorers are the modules in `germane.scorers.metrics`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import germane
from germane.registry import BUILTIN_SCORER_NAMES
from germane.score import NONCOMMITTAL, REFUSAL_SCORERS, Score
from germane.testing import FakeJudge

NEW_SCORER = """
from germane.score import Score


class Brevity:
    name, fingerprint, requires, range = "brevity", "brevity-1", frozenset({"answer"}), (0.0, 1.0)

    def __init__(self, *, limit: int = 10) -> None:
        self.limit = limit

    @classmethod
    def build(cls, models, options):
        return cls(**options)

    async def score(self, exchange):
        return float(len(exchange.answer) <= self.limit)
"""
SCRIPT = """
import json, germane
row = {"question": "Why?", "answer": "Because."}
settings = {"scorer_options": {"brevity": {"limit": 3}}}
print(json.dumps([score.value for score in germane.evaluate([row], "brevity", progress=False, **settings).scores]))
"""


def test_every_built_in_module_builds_the_scorer_that_it_is_named_after() -> None:
    """The name in settings, the module's name and the scorer's name are the same."""
    import asyncio

    from germane.scorers import build_scorers
    from germane.settings import load_settings

    with FakeJudge() as judge:
        settings = load_settings(service="tests", **judge.settings(), scorers=BUILTIN_SCORER_NAMES)
        scorer_set = build_scorers(settings)
        asyncio.run(scorer_set.aclose())

    assert [scorer.name for scorer in scorer_set.scorers] == list(BUILTIN_SCORER_NAMES)


def test_refusal_shares_are_measured_only_for_scorers_that_detect_refusals(fake: FakeJudge, exchange: Any) -> None:
    """The share of refusals is not measured for other scorers."""
    import asyncio

    from germane.scorers import build_scorers, run_scorer
    from germane.settings import load_settings

    fake.first_token = {"4": 1.0}
    settings = load_settings(service="tests", **fake.settings(), scorers=BUILTIN_SCORER_NAMES)

    async def score_all() -> list[Score]:
        scorer_set = build_scorers(settings)
        try:
            refusal = exchange("Where is the pier?", "I don't know.", "The pier is here.")
            return [await run_scorer(scorer, refusal) for scorer in scorer_set.scorers]
        finally:
            await scorer_set.aclose()

    scores = asyncio.run(score_all())

    assert {score.scorer for score in scores if score.label == NONCOMMITTAL} == REFUSAL_SCORERS


@pytest.mark.slow
def test_adding_a_scorer_takes_a_single_file(tmp_path: Path) -> None:
    """The settings can name a new module in `scorers/metrics`, with options, without any other change."""
    package = tmp_path / "germane"
    shutil.copytree(Path(germane.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "scorers" / "metrics" / "brevity.py").write_text(NEW_SCORER)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GERMANE_", "OPENAI_"))}

    completed = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=environment | {"PYTHONPATH": str(tmp_path)}, cwd=tmp_path, capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip

    assert completed.returncode == 0, completed.stderr
    assert json.loads(completed.stdout) == [0.0]


def test_names_of_built_in_scorers_are_known_without_importing_them() -> None:
    """Capture-only processes also check the names in the settings."""
    code = "import sys, germane.registry as r; assert 'faithfulness' in r.BUILTIN_SCORER_NAMES; print(*sys.modules)"

    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()

    assert "germane.scorers" not in modules
