"""Pictures of few colours: a screen with its text fits into a third of what a browser writes."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

COLOURS = 256
"""That one picture may have."""


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Return a picture as a PNG with a palette.

    Args:
        pixels: Shape (height, width, 3): red, green and blue. Of more than 256 colours the frequent ones stay as they
            are, and the others, the edges of letters, become the nearest of these.
    """
    height, width = pixels.shape[:2]
    codes = (pixels.astype(np.uint32) << np.array([16, 8, 0], np.uint32)).sum(axis=2, dtype=np.uint32)
    colours, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    palette = np.sort(colours[np.argsort(-counts, kind="stable")[:COLOURS]])
    rows = _nearest(colours, palette)[places].reshape(height, width)
    lines = np.hstack([np.zeros((height, 1), np.uint8), rows])  # each begins with its filter: none
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", _channels(palette).astype(np.uint8).tobytes()),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _nearest(colours: NDArray[np.uint32], palette: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Return for each colour the place in the palette of the nearest one."""
    far = [((_channels(palette) - one) ** 2).sum(axis=1).argmin() for one in _channels(colours)]
    return np.array(far, np.uint8)


def _channels(codes: NDArray[np.uint32]) -> NDArray[np.int64]:
    return np.stack([codes >> 16 & 255, codes >> 8 & 255, codes & 255], axis=1).astype(np.int64)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
