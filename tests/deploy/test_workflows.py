"""The workflows, the action and the issue forms."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from pathlib import Path

import pytest
from tests.deploy.files import DEPLOY, ROOT, WORKFLOWS, check_schema, load, program, run

from germane.testing import FakeJudge

ACTION = DEPLOY / "github-action" / "action.yml"
FORMS = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
USES = re.compile(r"(?m)^\s*-?\s*uses: (?P<action>[^@\s]+)@(?P<commit>\S+)(?: # (?P<version>\S+))?$")


@pytest.mark.slow
@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_matches_the_schema(path: Path) -> None:
    """GitHub would start it, and each job has a time limit."""
    check_schema("github-workflows", path)

    assert all("timeout-minutes" in job for job in load(path)["jobs"].values())


@pytest.mark.slow
def test_action_matches_the_schema() -> None:
    """GitHub would load it."""
    check_schema("github-actions", ACTION)


@pytest.mark.slow
@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_issue_form_matches_the_schema(path: Path) -> None:
    """GitHub would show it."""
    check_schema("github-issue-forms", path)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_has_no_permissions_by_default(path: Path) -> None:
    """Each job names those that it needs."""
    assert load(path)["permissions"] == {}


@pytest.mark.skipif(not WORKFLOWS, reason="an sdist does not contain the workflows")
def test_actions_are_pinned_by_commit() -> None:
    """A tag can be moved to other code. One version of an action is used everywhere."""
    used = defaultdict(set)
    for path in [*WORKFLOWS, ACTION]:
        for found in USES.finditer(path.read_text(encoding="utf-8")):
            assert re.fullmatch("[0-9a-f]{40}", found["commit"]), found[0]
            assert re.fullmatch(r"v\d+(\.\d+)*", found["version"] or ""), found[0]
            used[found["action"]].add((found["commit"], found["version"]))

    assert {action for action, commits in used.items() if len(commits) != 1} == set()
    assert len(used) >= 5


@pytest.mark.parametrize("path", [*WORKFLOWS, ACTION], ids=lambda path: path.name)
def test_no_script_in_a_workflow_contains_an_expression(path: Path) -> None:
    """A title or an input could otherwise become a part of the script."""
    jobs = load(path).get("jobs", {"action": load(path).get("runs", {})})
    scripts = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]

    assert scripts
    assert [script for script in scripts if "${{" in script] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fail_under", "rows", "code"), [("0.1", 24, 0), ("high", 24, 2), ("0.999", 24, 3), ("0.1", 3, 5)]
)
def test_the_action_scores_and_summarizes(fail_under: str, rows: int, code: int, bare: Path) -> None:
    """Its script reports the result in the job summary, and fails the job with germane's exit code."""
    (bare / "germane" / "bin").mkdir(parents=True)
    (bare / "germane" / "bin" / "germane").symlink_to(program("germane"))
    answers = [f"How do I return shoes {number}?,By post within {number} days." for number in range(rows)]
    (bare / "answers.csv").write_text("\n".join(["question,answer", *answers, ""]))
    with FakeJudge() as judge:
        variables = {
            "RUNNER_TEMP": str(bare), "GITHUB_OUTPUT": str(bare / "output"),
            "GITHUB_STEP_SUMMARY": str(bare / "summary"), "DATA": "answers.csv",
            "SCORERS": "answer_relevancy noncommittal", "FAIL_UNDER": fail_under, "MIN_COVERAGE": "0.9",
            "JUDGE": "m", "API_KEY": "none", "BASE_URL": judge.base_url,
        }  # fmt: skip
        ended = run("bash", ACTION.parent / "score.sh", env={**os.environ, **variables}, cwd=bare)

    assert ended.returncode == code, ended.stdout + ended.stderr
    assert (bare / "output").read_text() == f"exit-code={code}\n"
    assert (bare / "summary").exists() == (code != 2)
    assert code == 2 or f"| noncommittal | {rows} |" in (bare / "summary").read_text()
    assert ("::error" in ended.stdout) == (code in {3, 5})
