"""What a CDX query may ask to be left out."""

from __future__ import annotations

import pytest

from holdfast.replay.cdx.question import BadCdxParameter, read_filters


def test_filters_are_counted_before_any_is_compiled() -> None:
    with pytest.raises(BadCdxParameter, match="there are 9 of them"):
        read_filters(["~url:(", *["url:a"] * 8])
