"""`holdfast webhook` as people type it, with a receiver on a real socket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from standardwebhooks import Webhook as Verifier

from tests.flow.commands import Terminal
from tests.receiver import Answer, Receiver, receiving


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A receiver that this machine may send to."""
    monkeypatch.setenv("HOLDFAST_WEBHOOKS_ALLOW_NETWORKS", "127.0.0.0/8")
    with receiving() as opened:
        yield opened


def test_a_webhook_is_added_tested_changed_and_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], receiver: Receiver
) -> None:
    terminal = Terminal(tmp_path / "home", capsys)
    added = terminal.type("webhook", "add", receiver.url(), "--event", "execution.*", "--json").object
    tested = terminal.type("webhook", "test", "1")
    receiver.answers["/hook"] = lambda _: Answer(503, (), b"not now")
    refused = terminal.type("webhook", "test", "1")
    log = terminal.type("webhook", "deliveries", "1", "--json").object["deliveries"]
    again = terminal.type("webhook", "redeliver", "1", str(log[0]["id"]))
    rotated = terminal.type("webhook", "rotate-secret", "1", "--json").object
    disabled = terminal.type("webhook", "disable", "1", "--json").object
    listed = terminal.type("webhook", "list")
    shown = terminal.type("webhook", "show", "1", "--json").object
    removed = terminal.type("webhook", "remove", "1")

    first = receiver.received[0]
    assert Verifier(added["secret"]).verify(first.body, first.headers)["type"] == "webhook.test"
    assert (tested.code, refused.code) == (0, 1)
    assert "204" in tested.out
    assert "503" in refused.out
    assert "not now" in refused.out
    assert [(one["state"], one["log"][0]["status"]) for one in log] == [("failed", 503), ("delivered", 204)]
    assert "queued again" in again.out
    assert rotated["secret"] not in (None, added["secret"])
    assert disabled["enabled"] is False
    assert "disabled (by hand)" in listed.out
    assert shown["secret"] is None
    assert "removed" in removed.out
    assert "no webhooks yet" in terminal.type("webhook", "list").out


def test_what_cannot_be_is_refused_with_the_next_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal(tmp_path / "home", capsys)

    refused = terminal.type("webhook", "add", "https://user:pw@example.org/")
    missing = terminal.type("webhook", "show", "7")
    odd = terminal.type("webhook", "add", "https://example.org/", "--event", "job.exploded")

    assert (refused.code, missing.code, odd.code) == (1, 1, 1)
    assert "leave them out" in refused.err
    assert "pw" not in refused.err.replace("password", "")
    assert "holdfast webhook list" in missing.err
    assert "job.exploded" in odd.err
