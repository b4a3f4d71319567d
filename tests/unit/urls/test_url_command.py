"""`holdfast url` shows how an address is understood."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from holdfast.cli.url import url
from holdfast.urls import url_hash


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.command("url")(url)
    return app


def test_one_address_is_one_object(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["--json", "HTTP://www.Example.org:80/b/?z=1&a=2#x"])

    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "url": "HTTP://www.Example.org:80/b/?z=1&a=2#x",
        "normalised": "http://www.example.org/b/?a=2&z=1",
        "key": "org,example)/b?a=2&z=1",
        "url_hash": url_hash("http://www.example.org/b/?a=2&z=1"),
        "group": "http://www.example.org/b/",
        "priority": 2,
    }


def test_several_addresses_are_an_array_even_if_one_is_bad(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["--json", "example.org", "file:///etc/passwd"])

    assert result.exit_code == 1
    assert [shown["normalised"] for shown in json.loads(result.stdout)] == ["https://example.org/"]
    assert "only http and https are fetched, not file" in result.stderr


def test_a_single_bad_address_prints_nothing_but_the_reason(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["--json", "http://user:hunter2@example.org/"])

    assert result.exit_code == 1
    assert result.stdout == ""
    assert "user name or password" in result.stderr
    assert "hunter2" not in result.stderr


def test_people_read_lines(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["example.org/?page=2", "example.org"])

    first, second = result.stdout.split("\n\n")
    assert first.splitlines()[0].split() == ["normalised", "https://example.org/?page=2"]
    assert first.splitlines()[-1].split() == ["priority", "1"]
    assert second.splitlines()[-1].split() == ["priority", "3"]
