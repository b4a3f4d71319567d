"""The picture of the harbour's camera: computed, with different light in each state."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

_WIDTH, _HEIGHT, _HORIZON = 640, 360, 190
# Sky above, sky at the horizon, sea near, by state: morning, haze, evening, clear day.
_LIGHTS = (
    ((150, 186, 209), (240, 226, 199), (58, 102, 122)),
    ((178, 190, 196), (214, 217, 214), (92, 118, 124)),
    ((66, 84, 118), (236, 170, 126), (48, 66, 92)),
    ((112, 166, 206), (216, 232, 236), (38, 98, 128)),
)


def harbour_picture(state: int) -> bytes:
    above, low, near = (np.array(colour, dtype=float) for colour in _LIGHTS[(state - 1) % len(_LIGHTS)])
    random = np.random.default_rng(state)
    canvas = np.zeros((_HEIGHT, _WIDTH, 3))
    canvas[:_HORIZON] = _blend(above, low, _HORIZON)
    canvas[_HORIZON:] = _blend(low * 0.8 + near * 0.2, near, _HEIGHT - _HORIZON)
    _paint_hills(canvas, low * 0.55 + near * 0.35, random)
    _paint_waves(canvas, random)
    _paint_mole(canvas, near * 0.55)
    return _png(np.clip(canvas, 0, 255).astype(np.uint8))


def _blend(first: NDArray[np.float64], last: NDArray[np.float64], rows: int) -> NDArray[np.float64]:
    share = np.linspace(0.0, 1.0, rows)[:, None, None]
    blended: NDArray[np.float64] = first * (1 - share) + last * share
    return blended


def _paint_hills(canvas: NDArray[np.float64], colour: NDArray[np.float64], random: np.random.Generator) -> None:
    x = np.arange(_WIDTH)
    for height, shade in ((34, 1.12), (20, 0.96)):
        phases = random.uniform(0, 6.28, 3)
        ridge = sum(np.sin(x / (50.0 * (number + 1.3)) + phase) for number, phase in enumerate(phases))
        top = _HORIZON - (height * (0.6 + np.asarray(ridge) / 6)).astype(int)
        rows = np.arange(_HEIGHT)[:, None]
        canvas[(rows >= top) & (rows < _HORIZON)] = colour * shade


def _paint_waves(canvas: NDArray[np.float64], random: np.random.Generator) -> None:
    for row in range(_HORIZON, _HEIGHT, 2):
        nearness = (row - _HORIZON) / (_HEIGHT - _HORIZON)
        length = int(12 + 90 * nearness)
        for start in random.integers(0, _WIDTH, int(10 - 5 * nearness)):
            canvas[row, start : start + length] += (random.random() - 0.35) * (10 + 26 * nearness)


def _paint_mole(canvas: NDArray[np.float64], colour: NDArray[np.float64]) -> None:
    canvas[_HORIZON - 5 : _HORIZON + 6, 380:600] = colour
    canvas[_HORIZON - 62 : _HORIZON - 5, 566:578] = (238, 232, 218)
    canvas[_HORIZON - 42 : _HORIZON - 28, 566:578] = (170, 76, 58)
    canvas[_HORIZON - 72 : _HORIZON - 62, 564:580] = (60, 70, 78)


def _png(pixels: NDArray[np.uint8]) -> bytes:
    height, width, _ = pixels.shape
    # Each row with the filter "up": a gradient becomes a run of small equal differences, which packs well.
    rows = pixels.reshape(height, width * 3)
    differences = np.diff(rows, axis=0, prepend=np.zeros((1, width * 3), dtype=np.uint8))
    raw = np.hstack([np.full((height, 1), 2, dtype=np.uint8), differences]).tobytes()
    head = struct.pack("!IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack("!I", len(data)) + kind + data + struct.pack("!I", zlib.crc32(kind + data))
