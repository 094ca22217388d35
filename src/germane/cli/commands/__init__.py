"""Commands of the ``germane`` command line, one module per verb."""

from __future__ import annotations
