"""The version of the installed distribution."""

from __future__ import annotations

from importlib import metadata

__version__ = metadata.version("germane")
