"""The conformance table of `tests/golden/robots`, held against our matcher and against two libraries as oracles."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from protego import Protego
from robots import RobotsParser

from holdfast.fetch.robots import RobotsFile

GOLDEN = Path(__file__).parents[2] / "golden" / "robots"


class Case(NamedTuple):
    """One robots.txt, one agent, and what each address is told by which line (0 if by none)."""

    name: str
    clause: str
    body: bytes
    agent: str
    checks: tuple[tuple[str, bool, int], ...]


def read_cases() -> Iterator[Case]:
    for file in sorted(GOLDEN.glob("*.toml")):
        for case in tomllib.loads(file.read_text(encoding="utf-8"))["case"]:
            yield Case(
                case["name"],
                case["clause"],
                case["robots"].encode(case.get("encoding", "utf-8")),
                case.get("agent", "holdfast"),
                tuple((url, allowed, line) for url, allowed, line in case["checks"]),
            )


CASES = tuple(read_cases())
each_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


@each_case
def test_our_matcher_follows_the_table(case: Case) -> None:
    robots = RobotsFile.parse(case.body, case.agent)

    answers = [
        (url, decision.allowed, decision.line or 0) for url, _, _ in case.checks for decision in [robots.decide(url)]
    ]

    assert answers == list(case.checks), f"RFC 9309, {case.clause}"


def test_the_table_is_large_and_every_case_names_its_clause() -> None:
    assert len(CASES) >= 100
    assert len({case.name for case in CASES}) == len(CASES)
    assert all(case.clause[0].isdigit() and case.checks for case in CASES)


PROTEGO_IS_WRONG = {
    "a shorter name that our token begins with is not ours": "matches a prefix of the token",
    "a version after the token is cut off": "keeps the version as part of the token",
    "words after the token are cut off": "keeps the words as part of the token",
    "a crawl-delay between user-agent lines does not part them": "ends the group at a crawl-delay",
    "only CR and LF end a line": "splits lines at every Unicode line end",
    "an HTML page has no rules": "our choice; it reads rules out of mark-up",
    "table 1: a URL inside a query, bare in the rule": "compares the escaped query as it stands",
    "table 1: a URL inside a query, escaped in the rule": "compares the escaped query as it stands",
    "an escaped question mark in a path starts no query": "unescapes the question mark",
    "a percent sign that escapes nothing is a percent sign": "keeps a bare percent sign apart from %25",
    "an escape that breaks off is a prefix like any other": "decodes half a character",
}
ROBOTSPY_IS_WRONG = {
    "a name with digits is another robot's": "our choice; it cuts the name at the digit",
    "a whole user agent of ours is cut to its token": "our choice; it takes a token only",
    "lines may end in CR alone": "splits lines at LF alone",
    "line ends may be mixed, and each counts once": "splits lines at LF alone",
    "only CR and LF end a line": "cuts the value at the first space",
    "common slips of the pen are read as meant": "our choice; it reads the letter",
    "an HTML page has no rules": "our choice; it reads rules out of mark-up",
    "robots.txt itself may always be read": "has no such exception",
    "a URL without a path but with a query asks the root": "does not add the slash",
    "a fragment is not sent and not compared": "compares the fragment",
    "an escaped slash in a path is not a slash": "unescapes reserved characters",
    "an escaped slash in a rule is not a slash": "unescapes reserved characters",
    "an escaped question mark in a path starts no query": "unescapes reserved characters",
    "a space is the same bare and escaped": "cuts the value at the first space",
    "an escape that breaks off is a prefix like any other": "unescapes half a character",
    "length is counted in octets: a letter beyond ASCII is many": "counts characters",
    "double slashes are two octets": "makes one slash of two",
    "a star stands for any run of octets": "makes one slash of two",
    "table 3: a star named by its escape": "unescapes the star into a wildcard",
    "table 3: a dollar named by its escape": "unescapes the dollar into an anchor",
    "a hash named by its escape": "compares the fragment",
    "brackets, dots and question marks mean themselves": "reads brackets as a glob",
    "an escaped slash behind a star is found as written": "unescapes reserved characters",
}


def as_text(body: bytes) -> str:
    """Decode for the oracles, which take text: their quarrel with bytes is not what is tested."""
    return body.decode("utf-16") if body[:2] == b"\xff\xfe" else body.decode("utf-8-sig", "replace")


def as_url(target: str) -> str:
    return target if target.startswith("http") else "https://example.com" + target


@each_case
def test_protego_agrees_except_where_it_is_known_to_be_wrong(case: Case) -> None:
    oracle = Protego.parse(as_text(case.body))

    agrees = all(oracle.can_fetch(as_url(url), case.agent) == allowed for url, allowed, _ in case.checks)

    assert agrees is (case.name not in PROTEGO_IS_WRONG)


@each_case
def test_robotspy_agrees_except_where_it_is_known_to_be_wrong(case: Case) -> None:
    oracle = RobotsParser.from_string(as_text(case.body))

    agrees = all(oracle.can_fetch(case.agent, as_url(url)) == allowed for url, allowed, _ in case.checks)

    assert agrees is (case.name not in ROBOTSPY_IS_WRONG)


def test_the_known_disagreements_are_cases_of_the_table() -> None:
    names = {case.name for case in CASES}

    assert (PROTEGO_IS_WRONG.keys() | ROBOTSPY_IS_WRONG.keys()) <= names
