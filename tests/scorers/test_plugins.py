"""Scorers from installed packages (entry points) and from the `imports` setting."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from germane.errors import SettingsError, UsageError
from germane.registry import BUILTIN_SCORER_NAMES
from germane.scorers import build_scorers
from germane.settings import load_settings

MODULE = """
import germane

print("imported", flush=True)

def kindness(exchange):
    return 0.25

@germane.scorer(name="declared", requires={"answer"}, version="7")
async def own(exchange):
    return 0.75

class Length:
    name, fingerprint, requires, range = "length", "length-1", frozenset({"answer"}), (0.0, 1.0)
    async def score(self, exchange):
        return len(exchange.answer) / 100

def make():
    return Length()

instance = Length()
nothing = 3
def fails():
    raise OSError("no dictionary")
def two(one, other):
    return 0.5
"""
ENTRY_POINTS = """
[germane.scorers]
kindness = german_kindness:kindness
declared = german_kindness:own
length = german_kindness:{length}
nothing = german_kindness:nothing
fails = german_kindness:fails
two = german_kindness:two
gone = german_kindness:gone
away = not_there:scorer
misnamed = german_kindness:instance
"""
SCORE = """
import json, sys, germane
from germane.errors import SettingsError
row = {"question": "Why?", "answer": "x" * 50}
for names in sys.argv[1:]:
    try:
        found = germane.evaluate([row], names.split(","), progress=False)
        print(json.dumps([[score.scorer, score.value] for score in found.scores]))
    except SettingsError as error:
        print(json.dumps(str(error)))
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with an installed distribution."""
    (tmp_path / "german_kindness.py").write_text(MODULE)
    information = tmp_path / "german_kindness-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: german-kindness\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(ENTRY_POINTS.format(length="Length"))
    return tmp_path


def score(folder: Path, *names: str) -> tuple[list[str], list[Any]]:
    """Evaluate a row in a subprocess with each list of scorers. Return the output and the results."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GERMANE_", "OPENAI_"))}
    done = subprocess.run(
        [sys.executable, "-c", SCORE, *names],
        env=environment | {"PYTHONPATH": str(folder)}, cwd=folder, capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    return lines[: -len(names)], [json.loads(line) for line in lines[-len(names) :]]


@pytest.mark.slow
def test_installed_packages_can_provide_scorers(installed: Path) -> None:
    """An entry point can be a function, a decorated function, or a class. Its module is imported once."""
    before, (scores,) = score(installed, "kindness,declared,length")

    assert scores == [["kindness", 0.25], ["declared", 0.75], ["length", 0.5]]
    assert before == ["imported"]


@pytest.mark.slow
@pytest.mark.parametrize("length", ["make", "instance"])
def test_an_entry_point_can_name_a_factory_or_a_scorer(installed: Path, length: str) -> None:
    """A function without arguments is called; an object is used directly."""
    (installed / "german_kindness-1.0.dist-info" / "entry_points.txt").write_text(ENTRY_POINTS.format(length=length))

    assert score(installed, "length")[1] == [[["length", 0.5]]]


@pytest.mark.slow
def test_errors_from_a_plugin_name_the_plugin(installed: Path) -> None:
    """The error names the package and the cause. Plugins that are not named in settings are not loaded."""
    start = "setting scorers: {0!r} from the package german-kindness ("
    messages = {
        "nothing": "german_kindness:nothing) is not a scorer: it has no name, no fingerprint, no requires",
        "fails": "german_kindness:fails) cannot be loaded: OSError: no dictionary",
        "two": "german_kindness:two) cannot be loaded: TypeError: two() missing 2 required positional arguments",
        "gone": "german_kindness:gone) cannot be loaded: AttributeError",
        "away": "not_there:scorer) cannot be loaded: ModuleNotFoundError: No module named 'not_there'",
        "misnamed": "german_kindness:instance) creates a scorer with a different name, 'length'",
    }

    _, errors = score(installed, *messages)

    for (name, message), error in zip(messages.items(), errors, strict=True):
        assert error.startswith(start.format(name) + message)


@pytest.mark.slow
def test_two_packages_with_the_same_scorer_name_are_an_error(installed: Path) -> None:
    """The error names both packages."""
    other = installed / "other-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (other / "entry_points.txt").write_text("[germane.scorers]\nkindness = other:kindness\n")

    _, (error,) = score(installed, "kindness")

    assert error.startswith("setting scorers: several packages have a scorer 'kindness': ")
    assert "other (other:kindness)" in error


@pytest.mark.slow
def test_the_error_for_an_unknown_scorer_lists_plugins(installed: Path) -> None:
    """No plugin is loaded for this list."""
    before, (error,) = score(installed, "kindnes")

    known = ", ".join(sorted(BUILTIN_SCORER_NAMES))
    assert error.startswith(
        f"setting scorers: unknown scorer 'kindnes'; did you mean 'kindness'? Known scorers: {known}"
    )
    assert "away, declared, fails, gone, kindness, length, misnamed, nothing, two. To use your own, list" in error
    assert before == []


def test_modules_are_imported_before_scorers_are_built(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same settings can name a scorer that the module declares."""
    (bare / "shop_scorers.py").write_text(
        "import germane\n@germane.scorer\ndef shop_tone(exchange):\n    return 0.5\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(bare)

    scorer_set = build_scorers(load_settings(imports=("shop_scorers",), scorers=("shop_tone",)))

    assert [scorer.name for scorer in scorer_set.scorers] == ["shop_tone"]


@pytest.mark.parametrize("name", ["not_there", "not_there.at_all", "json.not_there", "two words", ".relative", "a-b"])
@pytest.mark.usefixtures("bare")
def test_a_failed_import_is_a_settings_error(name: str) -> None:
    """The error names the setting and the module."""
    with pytest.raises(SettingsError, match=r"^setting imports: ('.*' cannot be imported|invalid module name '.*';)"):
        build_scorers(load_settings(imports=(name,), scorers=()))


@pytest.mark.usefixtures("bare")
def test_options_for_an_unknown_scorer_are_an_error() -> None:
    """Otherwise, such options would be ignored."""
    with pytest.raises(SettingsError, match="unknown scorer 'shop_tone_2'"):
        build_scorers(load_settings(scorers=("shop_tone_2",), scorer_options={"shop_tone_2": {"a": 1}}))


def make_scorer(**attributes: Any) -> Any:
    """Return a scorer object with some attributes replaced."""
    defaults = {"name": "made", "fingerprint": "made-1", "requires": frozenset({"answer"}), "range": (0, 1)}
    return SimpleNamespace(**{**defaults, "score": None, **attributes})


@pytest.mark.parametrize(
    ("scorer", "message"),
    [
        (3, "3 is not a scorer: it has no name, no fingerprint, no requires, no range, no score"),
        (None, "None is not a scorer"),
        (lambda: 0.5, "cannot be called with one argument"),
        (dict, "dict is a class; pass an instance of it"),
        (
            make_scorer(range=(0, 10)),
            "is not a scorer: range must be increasing and from -1 to 1, not 0 to",
        ),
        (make_scorer(range=None), "is not a scorer: range must be two numbers"),
        (
            make_scorer(requires={"reference"}),
            "is not a scorer: requires must be any of question, answer and contexts, not reference",
        ),
        (make_scorer(requires=None), "is not a scorer: 'NoneType' object is not iterable"),
    ],
)
@pytest.mark.usefixtures("bare")
def test_invalid_scorers_from_plugins_are_rejected(scorer: Any, message: str) -> None:
    """The error is raised before any request is sent."""
    with pytest.raises(UsageError, match=message):
        build_scorers(load_settings(), [scorer])
