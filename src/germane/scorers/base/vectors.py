"""Checks and sums over vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from germane.errors import ScoringError
from germane.score import Reason
from germane.scorers.base.protocols import Vectors


def unit_rows(rows: Sequence[Any] | ArrayLike, count: int) -> Vectors:
    """Return the rows as an array of shape (count, dimensions), each brought to length 1.

    Raises:
        ScoringError: their number, dimension or content is wrong; reason ``embedder_error``.
    """
    try:
        matrix = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise _bad("vectors of uneven dimension, or no numbers") from None
    if matrix.ndim != 2 or matrix.shape[0] != count or matrix.shape[1] == 0:
        raise _bad(f"an array of shape {matrix.shape} for {count} texts")
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise _bad("a vector that is not finite")
    if (lengths == 0).any():
        raise _bad("a vector of zeros")
    unit: Vectors = matrix / lengths
    return unit


def mean_pairwise(rows: Vectors) -> float | None:
    """Return the mean cosine over all pairs of unit rows, or None for fewer than two."""
    if len(rows) < 2:
        return None
    above = np.triu_indices(len(rows), k=1)
    return float((rows @ rows.T)[above].mean())


def _bad(what: str) -> ScoringError:
    return ScoringError(Reason.EMBEDDER_ERROR, f"the embedder returned {what}")
