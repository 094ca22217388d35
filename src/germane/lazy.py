"""Names of a package that are imported when they are first used, so that unused ones take neither time nor memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from sys import modules
from typing import Any


def lazy_exports(package: str, names_by_module: Mapping[str, Sequence[str]]) -> partial[Any]:
    """Return the ``__getattr__`` of a package.

    The package also lists the names in ``__all__``, and imports them under ``TYPE_CHECKING`` for type checkers.

    Args:
        package: ``__name__`` of the package.
        names_by_module: Exported names by module, relative to the package.
    """
    return partial(
        _load, package, module_of={name: module for module, names in names_by_module.items() for name in names}
    )


def _load(package: str, name: str, *, module_of: Mapping[str, str]) -> Any:
    if name not in module_of:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    value = getattr(import_module(f"{package}.{module_of[name]}"), name)
    setattr(modules[package], name, value)
    return value
