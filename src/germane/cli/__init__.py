"""The command ``germane``: one module per verb, imported when it is called."""

from __future__ import annotations

from germane.cli.main import main

__all__ = ["main"]
