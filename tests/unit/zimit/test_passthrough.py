"""Which flags reach zimit: an allow-list, with values that cannot become anything else (faults.md, A15)."""

from __future__ import annotations

import pytest

from holdfast.zimit.errors import FlagRefused
from holdfast.zimit.passthrough import FLAGS, Flag, for_final_build, read_flags, split_workers


@pytest.mark.parametrize(
    "arguments",
    [
        ["--proxy-server", "http://x"], ["--proxyServer", "http://x"], ["--config", "/etc/x"], ["--driver", "evil.js"],
        ["; rm -rf /"], ["--scopeType", "host\n--driver"], ["--seeds", "https://x/"], ["--output", "/etc"],
        ["--build", "/tmp"], ["--warcs", "/etc/passwd"], ["--custom-behaviors", "http://x/a.js"], ["--seedFile", "x"],
        ["--scopeType"], ["--depth", "deep"], ["--depth", "1;2"], ["--keep=1"], ["host"], ["--scopeType", "--config"],
        ["--title", ""], ["--title", "x" * 5000], ["--profile", "http://x/p.tar.gz"], ["--profile", "../../etc/x"],
        ["--statsFilename", "x"], ["--healthCheckPort", "1"], ["--", "--", "--title", "x"], ["--debugAccessBrowser"],
    ],
)  # fmt: skip
def test_what_is_not_on_the_list_is_refused_with_the_phrase_that_callers_look_for(arguments: list[str]) -> None:
    with pytest.raises(FlagRefused, match="unrecognized arguments") as refused:
        read_flags(arguments)

    assert refused.value.field == "zimit_passthrough_args"


def test_what_says_what_to_crawl_passes_unchanged() -> None:
    given = ["--scopeType", "host", "--scopeExcludeRx=a,b", "--depth", "-1", "--allowHashUrls", "--profile", "foo"]

    words = [word for flag in read_flags(given) for word in flag.words]

    assert words[:5] == ["--scopeType", "host", "--scopeExcludeRx", "a,b", "--depth=-1"]
    assert words[5:] == ["--allowHashUrls", "--profile", "foo"]


def test_an_installation_may_let_one_more_through() -> None:
    assert read_flags(["--custom-css", "/output/a.css"], ["custom-css"]) == (Flag("--custom-css", "/output/a.css"),)


def test_workers_and_keep_are_the_tool_s_own() -> None:
    workers, others = split_workers(read_flags(["--keep", "--workers", "3", "--title", "T", "-w", "2"]))

    assert workers == 2
    assert others == (Flag("--title", "T"),)


def test_a_build_keeps_only_what_describes_the_zim() -> None:
    flags = read_flags(["--title", "T", "--scopeType", "host", "--zim-lang", "eng", "--depth", "3"])

    assert for_final_build(flags) == (Flag("--title", "T"), Flag("--zim-lang", "eng"))


def test_nothing_on_the_list_names_a_place_a_program_or_a_port() -> None:
    forbidden = "config driver proxy output build seeds seedfile warcs port redis file css cwd behaviors custom"
    allowed = ("--profile", "--behaviors")
    for word in forbidden.split():
        assert [name for name in FLAGS if word in name.lower() and name not in allowed] == [], word
