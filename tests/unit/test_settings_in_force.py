"""Settings are shown with where each was set, and secrets never."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import config
from holdfast.config.showing import settings_in_force


def test_each_setting_tells_where_it_was_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "holdfast.toml").write_text('contact = "a@b.example"\n[lease]\nseconds = 30\nrenew_s = 5\n')
    (tmp_path / ".env").write_text("HOLDFAST_LEASE_RENEW_S=6\nHOLDFAST_API_ADMIN_TOKEN=hush-hush-hush\n")
    monkeypatch.setenv("HOLDFAST_UPLOADS_AT_ONCE", "7")
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", "postgresql://me:hush@db.example/x")

    shown = {one.name: one for one in settings_in_force(config.load(home=tmp_path / "home"))}

    found = {
        name: (shown[f"HOLDFAST_{name}"].value, shown[f"HOLDFAST_{name}"].origin)
        for name in ("CONTACT", "LEASE_SECONDS", "LEASE_RENEW_S", "UPLOADS_AT_ONCE", "LEASE_RECOVER_S", "HOME")
    }
    assert found == {
        "CONTACT": ("a@b.example", "holdfast.toml"),
        "LEASE_SECONDS": (30.0, "holdfast.toml"),
        "LEASE_RENEW_S": (6.0, ".env"),
        "UPLOADS_AT_ONCE": (7, "environment"),
        "LEASE_RECOVER_S": (900.0, "default"),
        "HOME": (str(tmp_path / "home"), "command"),
    }
    assert shown["HOLDFAST_API_ADMIN_TOKEN"].is_secret
    assert shown["HOLDFAST_API_ADMIN_TOKEN"].origin == ".env"
    assert not any("hush" in str(one.value) for one in shown.values())
