"""Settings are shown with where each was set, and secrets never."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import config
from holdfast.config.showing import settings_in_force


def test_each_setting_tells_where_it_was_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "holdfast.toml").write_text('contact = "a@b.example"\n[politeness]\ndelay_s = 30\nretries = 5\n')
    (tmp_path / ".env").write_text("HOLDFAST_POLITENESS_RETRIES=6\nHOLDFAST_API_ADMIN_TOKEN=hush-hush-hush\n")
    monkeypatch.setenv("HOLDFAST_UPLOADS_MAX_BYTES", "7")
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", "postgresql://me:hush@db.example/x")

    shown = {one.name: one for one in settings_in_force(config.load(home=tmp_path / "home"))}

    expected = {
        "CONTACT": ("a@b.example", "file"),
        "POLITENESS_DELAY_S": (30.0, "file"),
        "POLITENESS_RETRIES": (6, "dotenv"),
        "UPLOADS_MAX_BYTES": (7, "environment"),
        "POLITENESS_MAX_DELAY_S": (300.0, "default"),
        "HOME": (str(tmp_path / "home"), "command"),
    }
    found = {name: (shown[f"HOLDFAST_{name}"].value, shown[f"HOLDFAST_{name}"].origin) for name in expected}
    assert found == expected
    assert shown["HOLDFAST_API_ADMIN_TOKEN"].is_secret
    assert shown["HOLDFAST_API_ADMIN_TOKEN"].origin == "dotenv"
    assert not any("hush" in str(one.value) for one in shown.values())
