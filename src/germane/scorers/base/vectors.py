"""Validation and similarity of embedding vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from germane.errors import ScoringError
from germane.score import UnscoredReason
from germane.scorers.base.protocols import Vectors


def normalize_rows(rows: Sequence[Any] | ArrayLike, count: int) -> Vectors:
    """Return the rows as an array of shape (count, dimensions), each scaled to unit length.

    Raises:
        ScoringError: the number, dimension or content of the rows is invalid; the reason is ``embedder_error``.
    """
    try:
        matrix = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise _invalid("vectors of different dimensions, or values that are not numbers") from None
    if matrix.ndim != 2 or matrix.shape[0] != count or matrix.shape[1] == 0:
        raise _invalid(f"an array of shape {matrix.shape} for {count} texts")
    with np.errstate(over="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))[:, None]
    if not np.isfinite(lengths).all():
        raise _invalid("a vector that is not finite")
    if (lengths == 0).any():
        raise _invalid("a vector of zeros")
    unit: Vectors = matrix / lengths
    return unit


def mean_pairwise_cosine(rows: Vectors) -> float | None:
    """Return the mean cosine of all pairs of unit-length rows, or None if there are fewer than two rows."""
    n = len(rows)
    if n < 2:
        return None
    total = rows.sum(axis=0)
    return float((total @ total - n) / (n * (n - 1)))  # |sum|^2 is n plus twice the sum over pairs


def _invalid(what: str) -> ScoringError:
    return ScoringError(UnscoredReason.EMBEDDER_ERROR, f"the embedder returned {what}")
