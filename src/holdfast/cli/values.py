"""What people write behind options, turned into values. What does not parse is told with an example; exit code 2."""

from __future__ import annotations

from enum import StrEnum
from ipaddress import ip_network
from pathlib import Path

import typer

from holdfast.errors import Invalid

_SIZES = {"": 1.0, "b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "k": 1e3, "m": 1e6, "g": 1e9}
_TIMES = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Robots(StrEnum):
    """What `--robots` takes."""

    OBEY = "obey"
    IGNORE = "ignore"


class Store(StrEnum):
    """What `--storage` takes."""

    WARC = "warc"
    SIGNALS = "signals"


def read_network(text: str) -> str:
    """Return a network as it is usually written."""
    try:
        return str(ip_network(text))
    except ValueError as exc:
        raise typer.BadParameter(f"{exc}; write for example 10.0.0.0/8", param_hint="--allow-network") from exc


def read_header(text: str) -> tuple[str, str]:
    """Return a header's name and value. The message does not repeat it: it may be a secret."""
    name, colon, value = text.partition(":")
    if not colon or not name.strip() or not text.isprintable():
        raise typer.BadParameter("write 'Name: value', on one line", param_hint="--header")
    return name.strip(), value.strip()


def read_cookies(path: Path | None) -> str:
    """Return what a file of cookies holds; Invalid if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace") if path is not None else ""
    except OSError as exc:
        raise Invalid(f"cannot read the cookies in {path}: {exc.strerror}") from exc


def read_size(text: str | None) -> int | None:
    """Return a number of bytes."""
    return None if text is None else int(_amount(text, _SIZES, "--max-bytes", "500MB"))


def read_time(text: str | None) -> float | None:
    """Return a number of seconds."""
    return None if text is None else _amount(text, _TIMES, "--max-time", "30m")


def _amount(text: str, units: dict[str, float], option: str, example: str) -> float:
    written = text.strip().lower()
    number = written.rstrip("abcdefghijklmnopqrstuvwxyz ")
    try:
        amount = float(number) * units[written[len(number) :].strip()]
    except (ValueError, KeyError) as exc:
        raise typer.BadParameter(f"{text!r} is no amount; write for example {example}", param_hint=option) from exc
    if amount >= 1e18:
        raise typer.BadParameter(f"{text!r} is more than can be kept; write for example {example}", param_hint=option)
    if not amount > 0:
        raise typer.BadParameter(f"{text!r} is not more than nothing; write for example {example}", param_hint=option)
    return amount
