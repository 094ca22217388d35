"""All settings, each with its type, default and environment variable.

In order of precedence, values come from the arguments of :func:`load_settings`, ``GERMANE_...`` environment variables,
``germane.toml``, and ``[tool.germane]`` in ``pyproject.toml``.
"""

from __future__ import annotations

from germane.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__)
