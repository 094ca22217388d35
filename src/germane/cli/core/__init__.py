"""Options, parameter types, output, signals and database access shared by all commands."""

from __future__ import annotations
