"""The matcher against a slow one that could not be simpler, and against patterns made to hurt it."""

from __future__ import annotations

import time
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.fetch.robots import MAX_WORK, TOO_COSTLY, RobotsDecision, RobotsFile
from tests import patience

UNRESERVED = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~"
RESERVED_AS_IS = ":/?[]@!&'()+,;="
HEX = "0123456789abcdefABCDEF"
STAR, END = "star", "end"


def spell(text: str, *, is_pattern: bool) -> list[str]:
    """Return octets as compared, one string each, in the most pedestrian way; escapes are single strings like %2F."""
    units: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char == "%" and len(text) > at + 2 and text[at + 1] in HEX and text[at + 2] in HEX:
            octet = chr(int(text[at + 1 : at + 3], 16))
            units.extend(octet if octet in UNRESERVED else text[at : at + 3].upper())
            at += 3
            continue
        if is_pattern and char == "*":
            units.append(STAR)
        elif is_pattern and char == "$" and at == len(text) - 1:
            units.append(END)
        elif char in UNRESERVED or char in RESERVED_AS_IS:
            units.append(char)
        elif is_pattern and char == "%" and begins_escape(text[at:]):
            units.extend("%" + text[at + 1 : at + 2].upper().replace("*", ""))
            at += len(text[at + 1 : at + 2].replace("*", ""))
        else:
            units.extend("".join(f"%{octet:02X}" for octet in char.encode()))
        at += 1
    return units


def begins_escape(rest: str) -> bool:
    return rest == "%" or rest[1] == "*" or (rest[1] in HEX and (len(rest) == 2 or rest[2] == "*"))


def fold(units: list[str]) -> list[str]:
    text = "".join({STAR: "\x01", END: "\x02"}.get(unit, unit) for unit in units)
    path, mark, query = text.partition("?")
    for escape, char in (("%2F", "/"), ("%3A", ":"), ("%3F", "?"), ("%40", "@")):
        query = query.replace(escape, char)
    return [{"\x01": STAR, "\x02": END}.get(char, char) for char in path + mark + query]


def slow_match(pattern: list[str], path: list[str]) -> bool:
    @cache
    def matches(p: int, t: int) -> bool:
        if p == len(pattern):
            return True
        if pattern[p] == END:
            return t == len(path)
        if pattern[p] == STAR:
            return matches(p + 1, t) or (t < len(path) and matches(p, t + 1))
        return t < len(path) and pattern[p] == path[t] and matches(p + 1, t + 1)

    return matches(0, 0)


def slow_decide(rules: list[tuple[bool, str]], target: str) -> RobotsDecision:
    """Try every rule on both spellings of the address; the longest wins, then the allow, then the first."""
    path = spell(target, is_pattern=False)
    best = (0, False, 0)
    for number, (allow, value) in enumerate(rules):
        pattern = fold(spell(value, is_pattern=True))
        if slow_match(pattern, path) or slow_match(pattern, fold(path)):
            best = max(best, (len(pattern), allow, -number))
    length, allow, number = best
    if not length:
        return RobotsDecision(True)
    return RobotsDecision(allow, f"{'Allow' if allow else 'Disallow'}: {rules[-number][1]}", 2 - number)


ESCAPES = ("%61", "%2f", "%2F", "%3A", "%", "%2", "%C3%a9", "%2A", "%24", "%20")
PIECES = st.sampled_from("ab/*$?=:~[é ") | st.sampled_from(ESCAPES)
VALUES = st.lists(PIECES, max_size=7).map(lambda pieces: ("/" + "".join(pieces)).strip())
STARRED = st.lists(PIECES, max_size=5).map(lambda pieces: ("*" + "".join(pieces)).strip())
TARGETS = st.lists(PIECES, max_size=9).map(lambda pieces: "/" + "".join(pieces))


@settings(deadline=None, max_examples=400)
@given(st.lists(st.tuples(st.booleans(), VALUES | STARRED), max_size=6), st.lists(TARGETS, min_size=1, max_size=4))
def test_the_fast_matcher_decides_as_the_slow_one(rules: list[tuple[bool, str]], targets: list[str]) -> None:
    lines = [f"{'Allow' if allow else 'Disallow'}: {value}" for allow, value in rules]
    robots = RobotsFile.parse("\n".join(["User-agent: *", *lines]).encode(), "holdfast")

    for target in targets:
        assert robots.decide(target) == slow_decide(rules, target)


AGENTS = st.sampled_from(["*", "holdfast", "Holdfast/1.0", "otherbot", "holdfast-news"])
NOISE = st.sampled_from(["", "# comment", "Sitemap: /s.xml", "Crawl-delay: 3", "Host: example.com", "nonsense", "x: y"])
GROUPS = st.tuples(
    st.lists(AGENTS, min_size=1, max_size=3),
    st.lists(st.tuples(st.booleans(), st.sampled_from(["/a", "/ab", "/a*b", "/b$", "/"])), min_size=1, max_size=3),
)


@settings(deadline=None, max_examples=200)
@given(st.lists(GROUPS, max_size=4), st.data(), st.sampled_from(["\n", "\r\n", "\r"]))
def test_groups_and_noise_are_read_as_they_were_meant(
    groups: list[tuple[list[str], list[tuple[bool, str]]]], data: st.DataObject, line_end: str
) -> None:
    lines: list[str] = []
    meant: dict[str, list[tuple[bool, str]]] = {}
    for agents, rules in groups:
        for agent in agents:
            lines += [f"User-agent: {agent}", data.draw(NOISE)]
        for allow, value in rules:
            lines += [f"{'Allow' if allow else 'Disallow'}: {value}", data.draw(NOISE)]
        for token in {agent.split("/")[0].lower() for agent in agents}:
            meant.setdefault(token, []).extend(rules)
    robots = RobotsFile.parse(line_end.join(lines).encode(), "holdfast")

    expected = meant.get("holdfast", meant.get("*", []))

    for target in ("/", "/a", "/ab", "/acb", "/b", "/bb"):
        assert robots.decide(target)[:2] == slow_decide(expected, target)[:2]


def hostile(patterns: list[str]) -> RobotsFile:
    return RobotsFile.parse(
        "\n".join(["User-agent: *", *(f"Disallow: {each}" for each in patterns)]).encode(), "holdfast"
    )


@pytest.mark.parametrize(
    ("patterns", "target"),
    [
        (["*a*a*a*a*a*a*a*a*a*a*a*a*b"], "/" + "a" * 8_000),
        (["/*a" * 200 + "b$"], "/" + "a/" * 4_000),
        (["*a" * 250_000 + "*b"], "/" + "a" * 8_000),
        (["/" + "*" * 500_000 + "b"], "/" + "a" * 8_000),
        ([f"/*{number:x}q" for number in range(30_000)], "/" + "a" * 200),
        (["/*" + "a" * 45 + f"b{number:x}" + "a" * 45 for number in range(5_000)], "/" + "a" * 100),
        (["/" + "a" * number for number in range(1_000)], "/" + "a" * 400 + "b"),
        (["/" + "a" * number + "*b" for number in range(900)], "/" + "a" * 120),
        (["/%41é%e9b" + str(number) for number in range(20_000)], "/%41" * 2_000),
    ],
)
def test_hostile_patterns_are_parsed_and_decided_in_bounded_time(patterns: list[str], target: str) -> None:
    started = time.process_time()
    hostile(patterns).decide(target)

    # Measured at 0.2 s at most; a matcher that backtracks would need years.
    assert time.process_time() - started < patience.allowed(5.0)


def test_an_address_is_denied_when_its_decision_would_cost_too_much() -> None:
    robots = hostile(["/*" + "ab" * 100 + f"{number:x}" for number in range(2_000)])

    assert robots.decide("/short").allowed
    assert robots.decide("/" + "a" * 8_000) == (False, TOO_COSTLY, None)


def test_five_hundred_ordinary_wildcards_are_decided_for_the_longest_address() -> None:
    robots = hostile([f"/*?k{number:04}=" for number in range(500)])

    assert robots.decide("/" + "a" * 8_191).allowed
    assert MAX_WORK > 500 * 9 * 8_192


def test_thousands_of_plain_rules_are_decided_like_one() -> None:
    robots = hostile([f"/section-{number}/" for number in range(20_000)])

    assert robots.decide("/section-19999/x").line == 20_001
    assert robots.decide("/section-20000/x").allowed
