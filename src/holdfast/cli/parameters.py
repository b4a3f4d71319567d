"""Parsing of option values. Errors come with an example of a valid value; exit code 2."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from holdfast import log
from holdfast.config import Settings
from holdfast.errors import Invalid

_SIZES = {"": 1.0, "b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "k": 1e3, "m": 1e6, "g": 1e9}
_TIMES = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def command_group(about: str) -> typer.Typer:
    """Return a Typer for the commands of one noun; without a command it prints its help, which begins with `about`."""
    # `holdfast completion` prints completions; our runner prints errors and help, without rich's frames and colours.
    return typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        no_args_is_help=True,
        help=about,
    )


def read_network(text: str) -> str:
    """Return a network in its canonical form."""
    try:
        return str(ip_network(text))
    except ValueError as exc:
        raise typer.BadParameter(f"{exc}; write for example 10.0.0.0/8", param_hint="--allow-network") from exc


def read_header(text: str) -> tuple[str, str]:
    """Return a header's name and value. Error messages do not repeat the value: it may be a secret."""
    name, colon, value = text.partition(":")
    # A line end inside would add a second header to every request.
    if not colon or not name.strip() or not text.isprintable():
        raise typer.BadParameter("write 'Name: value', on one line", param_hint="--header")
    return name.strip(), value.strip()


def read_cookies(path: Path | None) -> str:
    """Return the content of a cookie file; raise Invalid if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace") if path is not None else ""
    except OSError as exc:
        raise Invalid(f"cannot read the cookies in {path}: {exc.strerror}") from exc


def read_codes(given: Iterable[str] | None) -> tuple[str, ...]:
    """Return words that were repeated, or separated by commas."""
    return tuple(code.strip() for part in given or () for code in part.split(",") if code.strip())


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
        # float() accepts "nan" and "inf", too: the two checks below reject them.
        amount = float(number) * units[written[len(number) :].strip()]
    except (ValueError, KeyError) as exc:
        raise typer.BadParameter(f"{text!r} is no amount; write for example {example}", param_hint=option) from exc
    if amount >= 1e18:
        raise typer.BadParameter(f"{text!r} is more than can be kept; write for example {example}", param_hint=option)
    if not amount > 0:
        raise typer.BadParameter(f"{text!r} is not more than nothing; write for example {example}", param_hint=option)
    return amount


def read_assignments(words: Iterable[str], option: str = "--set") -> dict[str, Any]:
    """Return the assigned fields, nesting names with dots; exit code 2 for an invalid assignment."""
    made: dict[str, Any] = {}
    for word in words:
        name, equals, written = word.partition("=")
        *above, last = name.strip().split(".")
        if not equals or not last or not all(above):
            raise typer.BadParameter(f"{word[:80]!r}: write FIELD=VALUE, for example max_depth=5", param_hint=option)
        place = made
        for part in above:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise typer.BadParameter(f"{name!r} is given as a value and as a group", param_hint=option)
        place[last] = read_value(written)
    return made


def read_value(written: str) -> Any:
    """Return the value parsed as JSON, or the text itself if it is not JSON."""
    try:
        # `5`, `true`, `null` and lists as JSON has them; everything else is text, so that words need no quotes.
        return json.loads(written)
    except ValueError:
        return written


def leaves(fields: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every field with its name in `--set`; names inside a group have a dot."""
    for name, value in fields.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


Home = Annotated[Path | None, typer.Option("--home", help="Data directory (HOLDFAST_HOME; default ./holdfast-home).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
OnlyPublic = Annotated[bool, typer.Option("--public", help="Only what everybody may see: no members' sources.")]
ExecutionId = Annotated[int | None, typer.Argument(help="An execution's number; the latest if left out.")]
Apply = Annotated[bool, typer.Option("--apply", help="Do it; without this, only say what would be done.")]
OfSource = Annotated[str | None, typer.Option("--source", "-s", help="Only this source's.", metavar="CODE")]
Code = Annotated[str, typer.Argument(help="The source's code.", metavar="CODE")]
SourceCode = Annotated[str, typer.Option("--source", help="The source's code.", metavar="CODE")]
Contact = Annotated[str | None, typer.Option("--contact", help="E-mail or web address that site owners can reach.")]
Networks = Annotated[
    list[str] | None, typer.Option("--allow-network", help="Private network (CIDR) that may be requested.")
]
Host = Annotated[str | None, typer.Option("--host", help="Address to listen on (HOLDFAST_API_HOST).")]
Port = Annotated[
    int | None, typer.Option("--port", min=0, max=65535, help="Port (HOLDFAST_API_PORT; 8060); 0 is any free one.")
]
_DAY = ["%Y-%m-%d"]


class Days(NamedTuple):
    """Options for the first and the last day."""

    since: Annotated[datetime | None, typer.Option("--from", formats=_DAY, help="First day (UTC): 2025-01-31.")] = None
    until: Annotated[datetime | None, typer.Option("--to", formats=_DAY, help="Last day.")] = None

    @property
    def first(self) -> date | None:
        return self.since and self.since.date()

    @property
    def last(self) -> date | None:
        return self.until and self.until.date()


def one_of(word: str | None, known: Sequence[str], option: str) -> str | None:
    """Return the value of an option if it is valid; raise typer.BadParameter, which lists the valid ones."""
    if word is not None and word not in known:
        raise typer.BadParameter(f"{word[:40]!r} is not one of {', '.join(known)}", param_hint=option)
    return word


def configure_log(settings: Settings, *, unless_set: str = "WARNING", as_json: bool = True) -> None:
    """Configure logging for a command that prints its own results; HOLDFAST_LOG_LEVEL overrides `unless_set`."""
    # The log lines of the default level would bury a command's printed results.
    level = settings.log_level if "log_level" in settings.model_fields_set else unless_set
    log.configure(level, as_json=as_json)
