"""The ``germane`` command: one module per subcommand, imported when it is called."""

from __future__ import annotations

from germane.cli.app import main

__all__ = ["main"]
