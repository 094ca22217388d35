"""The embedded embedder: all-MiniLM-L6-v2 with int8 weights, on one core, without a network."""

from __future__ import annotations

from germane.scorers.local.minilm.model import MINILM_MODEL, MiniLM

__all__ = ["MINILM_MODEL", "MiniLM"]
