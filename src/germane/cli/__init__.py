"""The ``germane`` command. Each subcommand has its own module, which is imported on demand."""

from __future__ import annotations

from germane.cli.app import main

__all__ = ["main"]
