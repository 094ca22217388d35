"""PNG images with a palette. As such, screenshots are a third of the size of a browser's PNG files."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

COLORS = 256
"""Maximum number of colors of an image."""


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Encode an image as a PNG with a palette.

    Args:
        pixels: Shape (height, width, 3): red, green and blue. If there are more than 256 colors, the most frequent ones
            are preserved. The others, mostly edges of letters, are replaced by the nearest preserved color.
    """
    height, width = pixels.shape[:2]
    codes = (pixels.astype(np.uint32) << np.array([16, 8, 0], np.uint32)).sum(axis=2, dtype=np.uint32)
    colors, places, counts = np.unique(codes, return_inverse=True, return_counts=True)
    palette = np.sort(colors[np.argsort(-counts, kind="stable")[:COLORS]])
    rows = _nearest(colors, palette)[places].reshape(height, width)
    lines = np.hstack([np.zeros((height, 1), np.uint8), rows])  # each line starts with its filter type: none
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", _channels(palette).astype(np.uint8).tobytes()),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _nearest(colors: NDArray[np.uint32], palette: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Return the index of the nearest palette color for each color."""
    nearest = [((_channels(palette) - color) ** 2).sum(axis=1).argmin() for color in _channels(colors)]
    return np.array(nearest, np.uint8)


def _channels(codes: NDArray[np.uint32]) -> NDArray[np.int64]:
    return np.stack([codes >> 16 & 255, codes >> 8 & 255, codes & 255], axis=1).astype(np.int64)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
