"""Export and import of exchanges."""

from __future__ import annotations
