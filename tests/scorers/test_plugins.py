"""Scorers of other packages and modules: entry points, and the setting `imports`."""

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
from germane.scorers import build
from germane.settings import load

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
    """A folder with a small distribution, as an installer leaves it."""
    (tmp_path / "german_kindness.py").write_text(MODULE)
    information = tmp_path / "german_kindness-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: german-kindness\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(ENTRY_POINTS.format(length="Length"))
    return tmp_path


def score(folder: Path, *names: str) -> tuple[list[str], list[Any]]:
    """Evaluate a row by each of these lists of scorers, in another process; return its output, then the results."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GERMANE_", "OPENAI_"))}
    done = subprocess.run(
        [sys.executable, "-c", SCORE, *names],
        env=environment | {"PYTHONPATH": str(folder)}, cwd=folder, capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    return lines[: -len(names)], [json.loads(line) for line in lines[-len(names) :]]


def test_an_installed_package_brings_scorers(installed: Path) -> None:
    """A function, a declared one, and a class of which one is made; the module is imported once."""
    before, (scores,) = score(installed, "kindness,declared,length")

    assert scores == [["kindness", 0.25], ["declared", 0.75], ["length", 0.5]]
    assert before == ["imported"]


@pytest.mark.parametrize("length", ["make", "instance"])
def test_a_plugin_may_be_a_factory_or_a_scorer(installed: Path, length: str) -> None:
    """A function without arguments is called; an object is taken as it is."""
    (installed / "german_kindness-1.0.dist-info" / "entry_points.txt").write_text(ENTRY_POINTS.format(length=length))

    assert score(installed, "length")[1] == [[["length", 0.5]]]


def test_a_broken_plugin_is_named(installed: Path) -> None:
    """With its package and what is wrong; one that nobody names is never loaded."""
    start = "setting scorers: {0!r} of the package german-kindness ("
    told = {
        "nothing": "german_kindness:nothing) is no scorer: it has no name, no fingerprint, no requires",
        "fails": "german_kindness:fails) cannot be loaded: OSError: no dictionary",
        "two": "german_kindness:two) cannot be loaded: TypeError: two() missing 2 required positional arguments",
        "gone": "german_kindness:gone) cannot be loaded: AttributeError",
        "away": "not_there:scorer) cannot be loaded: ModuleNotFoundError: No module named 'not_there'",
        "misnamed": "german_kindness:instance) gives a scorer of another name, 'length'",
    }

    _, errors = score(installed, *told)

    for (name, said), error in zip(told.items(), errors, strict=True):
        assert error.startswith(start.format(name) + said)


def test_a_name_of_two_packages_is_refused(installed: Path) -> None:
    """Which of them is meant nobody can know."""
    other = installed / "other-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (other / "entry_points.txt").write_text("[germane.scorers]\nkindness = other:kindness\n")

    _, (told,) = score(installed, "kindness")

    assert told.startswith("setting scorers: 'kindness' is of several packages: ")
    assert "other (other:kindness)" in told


def test_an_unknown_name_is_told_with_those_of_plugins_too(installed: Path) -> None:
    """None of them is loaded for that."""
    before, (told,) = score(installed, "kindnes")

    assert told.startswith("setting scorers: there is no scorer 'kindnes'; there are answer_relevancy,")
    assert "away, declared, fails, gone, kindness, length, misnamed, nothing, two. The setting imports" in told
    assert before == []


def test_modules_are_imported_before_scorers_are_looked_up(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one declares can be named in the same settings."""
    (bare / "shop_scorers.py").write_text(
        "import germane\n@germane.scorer\ndef shop_tone(exchange):\n    return 0.5\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(bare)

    workbench = build(load(imports=("shop_scorers",), scorers=("shop_tone",)))

    assert [scorer.name for scorer in workbench.scorers] == ["shop_tone"]


@pytest.mark.parametrize("name", ["not_there", "not_there.at_all", "json.not_there", "two words", ".relative", "a-b"])
@pytest.mark.usefixtures("bare")
def test_a_module_that_cannot_be_imported_is_told(name: str) -> None:
    """At the start, with the setting's name."""
    with pytest.raises(SettingsError, match=r"^setting imports: '.*' (cannot be imported|is not a module's name)"):
        build(load(imports=(name,), scorers=()))


@pytest.mark.usefixtures("bare")
def test_a_scorer_of_ones_own_takes_no_options() -> None:
    """Rather than that they are read by nobody."""
    with pytest.raises(SettingsError, match="there is no scorer 'shop_tone_2'"):
        build(load(scorers=("shop_tone_2",), scorer_options={"shop_tone_2": {"a": 1}}))


def made(**parts: Any) -> Any:
    """Return a scorer of a class, with some parts of its own."""
    usual = {"name": "made", "fingerprint": "made-1", "requires": frozenset({"answer"}), "range": (0, 1)}
    return SimpleNamespace(**{**usual, "score": None, **parts})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (3, "3 is no scorer: it has no name, no fingerprint, no requires, no range, no score"),
        (None, "None is no scorer"),
        (lambda: 0.5, "cannot be called with one argument"),
        (dict, "the class dict is no scorer"),
        (
            made(range=(0, 10)),
            "is no scorer: range must go from less to more within -1 to 1, as means do, not from 0 to",
        ),
        (made(range=None), "is no scorer: range must be two numbers"),
        (made(requires={"reference"}), "is no scorer: requires knows question, answer and contexts, and no reference"),
        (made(requires=None), "is no scorer: 'NoneType' object is not iterable"),
    ],
)
@pytest.mark.usefixtures("bare")
def test_what_is_no_scorer_is_told(given: Any, told: str) -> None:
    """Before anything is asked."""
    with pytest.raises(UsageError, match=told):
        build(load(), [given])
