"""Public names of packages: somebody outside the package uses them."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator

from tests.packaging.conftest import ROOT

SOURCES = ROOT / "src" / "germane"
EXAMPLES = (*(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.py"), ROOT / "README.md")


def used_names() -> Iterator[str]:
    """Yield the full name of everything that one package takes from another."""
    for path in (*SOURCES.rglob("*.py"), *SOURCES.rglob("*.pyi")):
        own = f"germane.{path.relative_to(SOURCES).parts[0]}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                module = f"germane.{node.module}" if node.level and path.parent == SOURCES else node.module
                yield from (f"{module}.{alias.name}" for alias in node.names if module != own)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):  # of an imported package
                yield f"germane.{node.value.id}.{node.attr}"


def documented_names() -> Iterator[str]:
    """Yield the full names in the reference of the Python API, and those that examples import."""
    reference = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    for names in re.findall(r"(?ms)^```\{api\}\n(.*?)^```$", reference):
        yield from (f"germane.{name}" for name in re.findall(r"[\w.]+", names))
    for directive, name in re.findall(r"^\.\. ([\w:]+):: (\S+)$", reference, re.MULTILINE):
        if directive == "automodule":
            yield from (f"{name}.{member}" for member in getattr(importlib.import_module(name), "__all__", ()))
        yield name
    for path in EXAMPLES:
        imports = re.findall(r"from (germane\.\w+) import ([\w, ]+)", path.read_text(encoding="utf-8"))
        yield from (f"{package}.{name}" for package, names in imports for name in re.findall(r"\w+", names))


def test_every_public_name_of_a_package_has_a_user() -> None:
    """Another package uses it, or it is documented. Other names are private, so that a package is easy to change."""
    known = {*used_names(), *documented_names()}
    packages = sorted(f"germane.{path.parent.name}" for path in SOURCES.glob("*/__init__.py"))

    public = [f"{package}.{name}" for package in packages for name in importlib.import_module(package).__all__]

    assert len(public) > 300
    assert [name for name in public if name not in known] == []
