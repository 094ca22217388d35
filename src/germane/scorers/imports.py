"""The setting ``imports``: modules in which scorers are declared, imported before any scorer is looked up."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from germane.errors import SettingsError


def import_modules(names: Iterable[str]) -> None:
    """Import the modules, in their order. What one raises, other than that an import failed, is raised as it is.

    Raises:
        SettingsError: there is no module of that name, or it imports what is not there.
    """
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise SettingsError(f"setting imports: {name!r} is not a module's name, such as myapp.germane_setup")
        try:
            import_module(name)
        except ImportError as error:
            raise SettingsError(f"setting imports: {name!r} cannot be imported: {error}") from error
