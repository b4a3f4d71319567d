"""WARC files may lie in a folder of their own: a link in the data directory leads there."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.config import Settings
from holdfast.errors import Invalid
from holdfast.wiring import prepare


def test_warc_root_is_made_and_linked(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", warc_root=tmp_path / "disk" / "captures")
    prepare(settings)
    prepare(settings)

    assert (tmp_path / "home" / "warcs").resolve() == tmp_path / "disk" / "captures"
    assert (tmp_path / "disk" / "captures").is_dir()


def test_warc_root_is_refused_when_captures_lie_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "home" / "warcs").mkdir(parents=True)

    with pytest.raises(Invalid, match=r"HOLDFAST_WARC_ROOT is .*/disk, but captures lie in"):
        prepare(Settings(home=tmp_path / "home", warc_root=tmp_path / "disk"))
