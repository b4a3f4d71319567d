"""Reading seeds from arguments, files and standard input. Invalid lines of a file are reported, valid ones used."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from ipaddress import ip_network
from pathlib import Path
from typing import BinaryIO

import typer

from holdfast.cli.parameters import read_network
from holdfast.config import Settings
from holdfast.errors import Invalid, UrlRefused
from holdfast.fetch.guard import AddressGuard, demand_public
from holdfast.sources.contact import HELP, HELP_WITHOUT_OPTION, check_contact, known_contact, remember_contact
from holdfast.urls import DEFAULT, Normalisation, parse_seed

_MAX_COMPLAINTS = 20
# Most bytes read per line: more than any URL has, far less than a file that is not a list of lines.
_LINE_BYTES = 64 * 1024


def read_seeds(
    arguments: Iterable[str], files: Iterable[Path], networks: Sequence[str] = (), ports: Sequence[int] = ()
) -> list[str]:
    """Return all seeds once each, in order, without those that the guard rejects, unless their network is allowed.

    Raises Invalid if an argument is not a URL, or if nothing is left.
    """
    guard = AddressGuard(tuple(map(ip_network, networks)))
    policy = replace(DEFAULT, allow_ports=frozenset(ports))
    seeds: dict[str, None] = {}
    for argument in arguments:
        if argument == "-":
            seeds.update(dict.fromkeys(_lines("standard input", sys.stdin.buffer, guard, policy)))
        # People type `holdfast crawl seeds.txt`; do not search for a file that is named like a URL.
        elif "://" not in argument and Path(argument).is_file():
            seeds.update(dict.fromkeys(_file(Path(argument), guard, policy)))
        else:
            check_seed(argument, guard, policy)
            seeds[argument.strip()] = None
    for file in files:
        seeds.update(dict.fromkeys(_file(file, guard, policy)))
    if not seeds:
        raise Invalid("nothing to crawl: name at least one seed, for example: holdfast crawl https://example.org")
    return list(seeds)


def check_seed(text: str, guard: AddressGuard, policy: Normalisation = DEFAULT) -> None:
    """Raise UrlRefused for an invalid URL, and for an IP address that may not be contacted."""
    demand_public(parse_seed(text, policy), guard, allowed_by="--allow-network")


def check_reachable(settings: Settings, urls: Iterable[str], allowed: Iterable[str] | None = ()) -> list[str]:
    """Return the networks that may be reached; UrlRefused for an address that a crawl would not dial either."""
    networks = [*map(str, settings.allow_networks), *map(read_network, allowed or ())]
    guard = AddressGuard(tuple(map(ip_network, networks)))
    for url in urls:
        check_seed(url, guard)
    return networks


def _bounded(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file; of a line longer than any URL only its beginning, which is then rejected.

    A file without line ends, such as a disk image given by mistake, is thus never loaded as one line.
    """
    is_rest = False
    while piece := file.readline(_LINE_BYTES):
        if not is_rest:
            yield piece
        is_rest = not piece.endswith(b"\n")


def _file(path: Path, guard: AddressGuard, policy: Normalisation) -> Iterator[str]:
    if str(path) == "-":
        yield from _lines("standard input", sys.stdin.buffer, guard, policy)
        return
    try:
        with path.open("rb") as lines:
            yield from _lines(path.name, lines, guard, policy)
    except OSError as exc:
        raise Invalid(f"cannot read the seeds in {path}: {exc.strerror}; name a file with one address a line") from exc


def _lines(name: str, file: BinaryIO, guard: AddressGuard, policy: Normalisation) -> Iterator[str]:
    """Yield the URLs of a seeds file: one per line; blank lines and comments (#) are skipped."""
    bad = 0
    for number, line in enumerate(_bounded(file), 1):
        # Editors on Windows put a byte order mark first.
        text = line.decode("utf-8", "replace").lstrip("\ufeff").strip()
        if not text or text.startswith("#"):
            continue
        try:
            check_seed(text, guard, policy)
        except UrlRefused as exc:
            bad += 1
            # A disk image given by mistake would print an error for each of its millions of lines.
            if bad <= _MAX_COMPLAINTS:
                print(f"holdfast: {name}, line {number}: {exc}", file=sys.stderr)
            continue
        yield text
    if bad > _MAX_COMPLAINTS:
        print(f"holdfast: {name}: {bad - _MAX_COMPLAINTS} more lines are no addresses", file=sys.stderr)


def find_contact(settings: Settings, given: str | None = None, *, has_option: bool = True) -> str:
    """Return the contact for this crawl; raise Invalid without one if there is no terminal to prompt at.

    `has_option` says whether the command takes `--contact`, so that the error recommends something that works.
    """
    help_text = HELP if has_option else HELP_WITHOUT_OPTION
    if contact := given or known_contact(settings):
        return check_contact(contact, help_text)
    # A timer or a pipe cannot answer: the question would hang forever.
    if not sys.stdin.isatty() or not sys.stderr.isatty():
        raise Invalid(f"no contact, so nothing is crawled; {help_text}")
    return remember_contact(
        settings, typer.prompt("Contact for site owners (e-mail or web address; asked once)", err=True)
    )
