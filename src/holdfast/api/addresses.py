"""Links that answers carry: where a capture is looked at, raw or in its replay."""

from __future__ import annotations

from datetime import datetime

from holdfast.clock import digits14
from holdfast.config import Settings
from holdfast.replay.address import replay_path


def raw_url(snapshot_id: int) -> str:
    """Return the path of a capture's raw view."""
    return f"/api/snapshots/raw/{snapshot_id}"


def browse_url(settings: Settings, *, url: str, captured_at: datetime, snapshot_id: int) -> str:
    """Return where a capture is replayed, on the replay host; the fragment names the capture for our own pages."""
    path = replay_path(digits14(captured_at), "", url.partition("#")[0])
    return f"{settings.replay_origin}{path}#ha_snapshot={snapshot_id}"
