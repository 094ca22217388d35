"""The encoding of screenshots."""

from __future__ import annotations

import runpy
import struct
import zlib
from typing import Any

import numpy as np
from tests.cases import each
from tests.docs.blocks import DOCS

png = runpy.run_path(str(DOCS / "palette.py"))["png"]


def read(picture: bytes) -> Any:
    """Return the pixels of a picture whose lines are unfiltered."""
    parts, at = {}, 8
    while at < len(picture):
        (length,) = struct.unpack(">I", picture[at : at + 4])
        parts[picture[at + 4 : at + 8]] = picture[at + 8 : at + 8 + length]
        at += 12 + length
    width, height = struct.unpack(">II", parts[b"IHDR"][:8])
    palette = np.frombuffer(parts[b"PLTE"], np.uint8).reshape(-1, 3)
    lines = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, width + 1)
    return palette[lines[:, 1:]]


@each("colors", [1, 2, 256])
def test_pictures_with_up_to_256_colors_are_compressed_without_loss(colors: int) -> None:
    """Pixels are unchanged."""
    chance = np.random.default_rng(7)
    some = chance.integers(0, 256, (colors, 3), np.uint8)
    pixels = some[chance.integers(0, colors, (30, 50))]

    assert (read(png(pixels)) == pixels).all()


def test_frequent_colors_of_a_picture_are_kept() -> None:
    """A rare color becomes the nearest frequent color."""
    chance = np.random.default_rng(7)
    rare = chance.integers(200, 246, (2, 300, 3), np.uint8)
    paper = np.full((50, 300, 3), 246, np.uint8)
    pixels = np.vstack([paper, rare])
    found = read(png(pixels))

    assert (found[:50] == paper).all()
    assert len(np.unique(found.reshape(-1, 3), axis=0)) == 256
    assert np.abs(found[50:].astype(int) - rare).mean() < 5
