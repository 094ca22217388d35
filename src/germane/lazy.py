"""Packages that import their public names when they are first used, so that unused ones take neither time nor memory.

A package lists the names once, in its stub ``__init__.pyi``, as SPEC 1 of Scientific Python proposes. Its library
``lazy_loader`` is not used because the environment variable ``EAGER_IMPORT``, which users set for other packages, makes
it import everything, including optional dependencies that are not installed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pkgutil import get_data
from sys import modules
from typing import Any


def attach_stub(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package that has a stub."""
    stub = ast.parse(get_data(package, "__init__.pyi") or b"")
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    module_of = {
        alias.name: f"{package}.{node.module}" if node.level else str(node.module)
        for node in imports
        for alias in node.names
    }

    def load(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(module_of[name]), name)
        setattr(modules[package], name, value)
        return value

    return load, lambda: sorted({*vars(modules[package]), *module_of}), sorted(module_of)
