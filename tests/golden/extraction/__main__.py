"""Raise the floors to what is reached now, and never lower one: `python -m tests.golden.extraction`."""

from __future__ import annotations

import json
import math

from tests.golden.extraction.figures import FLOORS, floors, reached


def main() -> None:
    """Write the floors; what fell is printed and left for an edit that a reviewer sees."""
    least = floors() if FLOORS.exists() else {}
    figures = reached()
    for name, figure in figures.items():
        floor = math.floor(figure * 1000) / 1000
        if floor < least.get(name, 0.0):
            print(f"{name} fell to {figure:.4f}; its floor stays at {least[name]:.3f}")
        least[name] = max(floor, least.get(name, 0.0))
    FLOORS.write_text(json.dumps(least, indent=2) + "\n")


if __name__ == "__main__":
    main()
