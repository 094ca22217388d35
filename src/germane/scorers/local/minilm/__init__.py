"""The embedded embedding model: all-MiniLM-L6-v2 with int8 weights. It runs on one core, without network access."""

from __future__ import annotations

from germane.scorers.local.minilm.model import MINILM_MODEL, MiniLM

__all__ = ["MINILM_MODEL", "MiniLM"]
