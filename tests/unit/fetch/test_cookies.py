"""The cookie jar: which server may set what, what goes back to which, and what a hostile one cannot do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.fetch.cookies import MAX_HEADER_BYTES, MAX_PER_SITE, CookieFileInvalid, CookieJar, read_cookie_date

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
SUFFIXES = {"com", "org", "uk", "co.uk", "io", "github.io", "localhost"}
HOME = "https://www.example.com/"


def is_public_suffix(domain: str) -> bool:
    return domain in SUFFIXES


@pytest.fixture
def jar() -> CookieJar:
    return CookieJar(is_public_suffix)


def test_an_empty_jar_sends_nothing(jar: CookieJar) -> None:
    assert jar.header_for(HOME, NOW) is None


def test_a_cookie_goes_back_to_the_host_that_set_it_and_to_no_other(jar: CookieJar) -> None:
    assert jar.store(HOME, ["id=1"], NOW) == 0

    assert jar.header_for("https://www.example.com/deep/page?x#y", NOW) == "id=1"
    assert jar.header_for("https://WWW.EXAMPLE.COM:8443/", NOW) == "id=1"
    for stranger in (
        "https://example.com/",
        "https://a.www.example.com/",
        "https://example.org/",
        "ftp://www.example.com/",
    ):
        assert jar.header_for(stranger, NOW) is None


def test_a_domain_attribute_opens_a_cookie_to_the_hosts_below(jar: CookieJar) -> None:
    jar.store(HOME, ["id=1; Domain=.Example.COM"], NOW)

    for host in ("www.example.com", "example.com", "a.b.example.com"):
        assert jar.header_for(f"https://{host}/", NOW) == "id=1"
    assert jar.header_for("https://badexample.com/", NOW) is None


@pytest.mark.parametrize(
    "domain",
    ["com", ".com", "other.com", "b.www.example.com", "xample.com", "example.com.", "ww.example.com", "éxample.com"],
)
def test_a_domain_that_is_not_above_the_host_is_refused(jar: CookieJar, domain: str) -> None:
    assert jar.store(HOME, [f"id=1; Domain={domain}"], NOW) == 1
    assert len(jar) == 0


def test_a_public_suffix_takes_no_cookie_from_below(jar: CookieJar) -> None:
    assert jar.store("https://shop.co.uk/", ["id=1; Domain=co.uk"], NOW) == 1
    assert jar.store("https://me.github.io/", ["id=1; Domain=github.io"], NOW) == 1
    assert len(jar) == 0


def test_a_host_that_is_a_public_suffix_keeps_its_cookie_to_itself(jar: CookieJar) -> None:
    jar.store("https://github.io/", ["id=1; Domain=github.io"], NOW)

    assert jar.header_for("https://github.io/", NOW) == "id=1"
    assert jar.header_for("https://me.github.io/", NOW) is None


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_an_address_has_cookies_of_its_own_only(jar: CookieJar, host: str) -> None:
    assert jar.store(f"http://{host}:8060/", ["a=1", f"b=2; Domain={host}", "c=3; Domain=0.0.1"], NOW) == 1

    assert jar.header_for(f"http://{host}/", NOW) == "a=1; b=2"


@pytest.mark.parametrize(
    ("path", "sent"),
    [("/docs", True), ("/docs/", True), ("/docs/web", True), ("/docsets", False), ("/", False), ("/doc", False)],
)
def test_a_path_matches_whole_segments(jar: CookieJar, path: str, sent: bool) -> None:
    jar.store(HOME, ["id=1; Path=/docs"], NOW)

    assert (jar.header_for(f"https://www.example.com{path}", NOW) is not None) is sent


@pytest.mark.parametrize(
    ("set_by", "below", "beside"),
    [("/a/b/c", "/a/b/x", "/a/x"), ("/a", "/x", None), ("", "/", None), ("/a/", "/a/x", "/b"), ("?a/b/", "/x", None)],
)
def test_without_a_path_the_directory_of_the_page_counts(
    jar: CookieJar, set_by: str, below: str, beside: str | None
) -> None:
    jar.store(f"https://www.example.com{set_by}", ["id=1; Path=nonsense"], NOW)

    assert jar.header_for(f"https://www.example.com{below}", NOW) == "id=1"
    assert beside is None or jar.header_for(f"https://www.example.com{beside}", NOW) is None


def test_longer_paths_go_first_and_older_cookies_before_newer_ones(jar: CookieJar) -> None:
    jar.store("https://www.example.com/a/b", ["x=1; Path=/", "y=2; Path=/a", "z=3; Path=/", "x=4; Path=/"], NOW)

    assert jar.header_for("https://www.example.com/a/b", NOW) == "y=2; x=4; z=3"


def test_a_secure_cookie_never_travels_in_the_clear(jar: CookieJar) -> None:
    jar.store(HOME, ["id=1; Secure"], NOW)

    assert jar.header_for("https://www.example.com/", NOW) == "id=1"
    assert jar.header_for("http://www.example.com/", NOW) is None


def test_plain_http_can_neither_set_nor_replace_nor_end_a_secure_cookie(jar: CookieJar) -> None:
    jar.store(HOME, ["id=1; Secure"], NOW)

    assert jar.store("http://www.example.com/", ["id=2", "id=; Max-Age=0", "new=1; Secure"], NOW) == 3
    assert jar.header_for(HOME, NOW) == "id=1"


@pytest.mark.parametrize(
    ("url", "header"),
    [
        ("http://www.example.com/", "id=2; Domain=example.com"),
        ("http://a.www.example.com/", "id=2; Domain=example.com"),
        ("http://www.example.com/deep/page", "id=2; Path=/deep"),
    ],
)
def test_plain_http_cannot_set_a_cookie_over_a_secure_one_of_the_same_name(
    jar: CookieJar, url: str, header: str
) -> None:
    jar.store(HOME, ["id=1; Secure"], NOW)

    assert jar.store(url, [header], NOW) == 1
    assert jar.header_for("https://www.example.com/deep/page", NOW) == "id=1"


def test_plain_http_may_set_what_does_not_reach_a_secure_cookie(jar: CookieJar) -> None:
    jar.store("https://www.example.com/deep/", ["id=1; Secure; Path=/deep"], NOW)

    assert jar.store("http://www.example.com/", ["id=2; Path=/", "other=3; Path=/deep"], NOW) == 0
    assert jar.store("http://b.example.com/", ["id=4"], NOW) == 0


def test_plain_http_cannot_push_out_a_secure_cookie(jar: CookieJar) -> None:
    jar.store(HOME, ["session=1; Secure; Domain=example.com"], NOW)
    jar.store("http://b.example.com/", [f"x{n}=1" for n in range(500)], NOW)

    assert len(jar) == MAX_PER_SITE
    assert jar.header_for(HOME, NOW) == "session=1"


def test_the_cookie_that_was_not_used_for_longest_makes_room(jar: CookieJar) -> None:
    jar.store(HOME, ["session=1"], NOW)
    jar.store(HOME, [f"x{n}=1; Path=/once" for n in range(49)], NOW)
    assert jar.header_for(HOME, NOW) == "session=1"
    jar.store(HOME, [f"y{n}=1; Path=/twice" for n in range(49)], NOW)

    assert jar.header_for(HOME, NOW) == "session=1"


def test_the_whole_jar_keeps_what_was_used_last() -> None:
    jar = CookieJar(is_public_suffix, max_total=3)
    for site in ("a", "b", "c"):
        jar.store(f"https://{site}.com/", ["id=1"], NOW)
    jar.header_for("https://a.com/", NOW)
    jar.store("https://d.com/", ["id=1"], NOW)

    assert jar.header_for("https://a.com/", NOW) == "id=1"
    assert jar.header_for("https://b.com/", NOW) is None


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("id=1; Max-Age=10", 10),
        ("id=1; max-age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT", 10),
        ("id=1; Expires=Thu, 01 Jan 2026 00:00:10 GMT", 10),
        ("id=1; Max-Age=never; Expires=Thu, 01 Jan 2026 00:00:10 GMT", 10),
        ("id=1; Max-Age=" + "9" * 500, 400 * 86_400),
        ("id=1; Expires=Fri, 31 Dec 9999 23:59:59 GMT", 400 * 86_400),
    ],
)
def test_a_cookie_ends_when_it_says_and_no_later_than_in_400_days(jar: CookieJar, header: str, seconds: int) -> None:
    jar.store(HOME, [header], NOW)

    assert jar.header_for(HOME, NOW + timedelta(seconds=seconds - 1)) == "id=1"
    assert jar.header_for(HOME, NOW + timedelta(seconds=seconds)) is None


@pytest.mark.parametrize("header", ["id=1", "id=1; Expires=soon", "id=1; Max-Age=", "id=1; Max-Age=1e9"])
def test_a_cookie_without_an_end_lives_as_long_as_the_jar(jar: CookieJar, header: str) -> None:
    jar.store(HOME, [header], NOW)

    assert jar.header_for(HOME, NOW + timedelta(days=3_000)) == "id=1"


@pytest.mark.parametrize("end", ["Max-Age=0", "Max-Age=-1", "Expires=Thu, 01 Jan 1970 00:00:00 GMT"])
def test_a_server_ends_a_cookie_by_setting_it_in_the_past(jar: CookieJar, end: str) -> None:
    jar.store(HOME, ["id=1"], NOW)

    assert jar.store(HOME, [f"id=; {end}"], NOW) == 0
    assert len(jar) == 0


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("Thu, 01 Jan 2026 00:00:10 GMT", datetime(2026, 1, 1, 0, 0, 10, tzinfo=UTC)),
        ("Thursday, 01-Jan-26 00:00:10 GMT", datetime(2026, 1, 1, 0, 0, 10, tzinfo=UTC)),
        ("Thu Jan  1 00:00:10 2026", datetime(2026, 1, 1, 0, 0, 10, tzinfo=UTC)),
        ("1-january-99 1:2:3", datetime(1999, 1, 1, 1, 2, 3, tzinfo=UTC)),
        ("", None),
        ("Thu, 32 Jan 2026 00:00:10 GMT", None),
        ("Thu, 30 Feb 2026 00:00:10 GMT", None),
        ("Thu, 01 Jan 2026 24:00:10 GMT", None),
        ("Thu, 01 Jan 1600 00:00:10 GMT", None),
        ("Thu, 01 Jan 2026", None),
        ("01 02 03 04:05:06", None),
    ],
)
def test_dates_are_read_in_all_the_spellings_of_the_rfc(text: str, moment: datetime | None) -> None:
    assert read_cookie_date(text) == moment


@pytest.mark.parametrize(
    "header",
    [
        "",
        "novalue",
        "=1",
        " =1",
        "id=1\r\nX-Injected: yes",
        "id=1\nx",
        "id=\x00",
        "id\x7f=1",
        "id=a\tb",
        "id=\u0142",
        "id=" + "x" * 4_095,
        "id=" + "x" * 8_192,
        "id=1; " + "Path=/;" * 2_000,
        "__Secure-id=1",
        "__Host-id=1; Secure",
        "__Host-id=1; Secure; Path=/docs",
        "__Host-id=1; Secure; Path=/; Domain=www.example.com",
        "__host-id=1; Path=/",
    ],
)
def test_what_breaks_a_header_a_limit_or_a_promise_is_refused(jar: CookieJar, header: str) -> None:
    assert jar.store(HOME, [header], NOW) == 1
    assert len(jar) == 0


@pytest.mark.parametrize(
    ("header", "pair"),
    [
        ("id=" + "x" * 4_094, "id=" + "x" * 4_094),
        ('id="a b, c"; HttpOnly; SameSite=Lax', 'id="a b, c"'),
        ("id=a=b==", "id=a=b=="),
        ("id=", "id="),
        ("  id \t=  1  ;Path=/", "id=1"),
        ("id=caf\xe9", "id=caf\xe9"),
        ("__Secure-id=1; Secure", "__Secure-id=1"),
        ("__Host-id=1; Secure; Path=/", "__Host-id=1"),
        ("id=1; Domain=; Path=", "id=1"),
    ],
)
def test_what_can_be_sent_back_is_kept_as_it_came(jar: CookieJar, header: str, pair: str) -> None:
    assert jar.store(HOME, [header], NOW) == 0
    assert jar.header_for(HOME, NOW) == pair


def test_a_site_with_a_thousand_cookies_keeps_the_newest_fifty(jar: CookieJar) -> None:
    jar.store("https://a.example.com/", [f"a{n}=1; Domain=example.com" for n in range(500)], NOW)
    jar.store("https://b.example.com/", [f"b{n}=1" for n in range(500)], NOW)

    assert len(jar) == MAX_PER_SITE
    assert jar.header_for("https://b.example.com/", NOW) == "; ".join(f"b{n}=1" for n in range(450, 500))


def test_an_ended_cookie_makes_room_before_a_living_one(jar: CookieJar) -> None:
    jar.store(HOME, ["keep=1", "brief=1; Max-Age=5", *(f"x{n}=1" for n in range(48))], NOW)
    jar.store(HOME, ["new=1"], NOW + 5 * SECOND)

    header = jar.header_for(HOME, NOW + 5 * SECOND) or ""

    assert header.startswith("keep=1; x0=1")
    assert header.endswith("new=1")


def test_a_site_cannot_push_out_the_cookies_of_another(jar: CookieJar) -> None:
    jar.store("https://a.co.uk/", ["id=1"], NOW)
    jar.store("https://b.co.uk/", [f"x{n}=1" for n in range(200)], NOW)

    assert jar.header_for("https://a.co.uk/", NOW) == "id=1"


def test_the_whole_jar_is_bounded_and_the_least_recently_used_go_first() -> None:
    jar = CookieJar(is_public_suffix, max_total=100)
    for n in range(5_000):
        jar.store(f"https://site{n}.com/", ["id=1"], NOW)

    assert len(jar) == 100
    assert jar.header_for("https://site4899.com/", NOW) is None
    assert jar.header_for("https://site4900.com/", NOW) == "id=1"


def test_a_header_stays_within_what_servers_take(jar: CookieJar) -> None:
    jar.store(HOME, [f"c{n}=" + "x" * 4_000 for n in range(20)], NOW)

    assert len(jar.header_for(HOME, NOW) or "") <= MAX_HEADER_BYTES


def test_cookies_from_something_that_is_no_web_address_are_refused(jar: CookieJar) -> None:
    assert jar.store("file:///etc/passwd", ["id=1", "b=2"], NOW) == 2


FILE = (
    "# Netscape HTTP Cookie File\r\n"
    "\r\n"
    ".example.com\tTRUE\t/\tTRUE\t0\tsession\tabc\r\n"
    "#HttpOnly_www.example.com\tFALSE\t/docs\tFALSE\t1767225610\tdocs\tx=y z\n"
    "www.example.com\tfalse\t/\tfalse\t-1\tempty\n"
)


def test_a_cookies_txt_is_loaded(jar: CookieJar) -> None:
    assert jar.load_netscape("\ufeff" + FILE) == 3

    assert jar.header_for("https://www.example.com/docs/x", NOW) == "docs=x=y z; session=abc; empty="
    assert jar.header_for("https://www.example.com/docs/x", NOW + 10 * SECOND) == "session=abc; empty="
    assert jar.header_for("http://www.example.com/", NOW) == "empty="
    assert jar.header_for("https://a.example.com/", NOW) == "session=abc"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("example.com FALSE / FALSE 0 secret value", "seven fields parted by tabs are needed, found 1"),
        ('[{"name": "secret"}]', "seven fields parted by tabs are needed, found 1"),
        ("example.com\tFALSE\t/\tFALSE\t0\tsecret\tvalue\tmore", "seven fields parted by tabs are needed, found 8"),
        ("\tFALSE\t/\tFALSE\t0\tsecret\tvalue", "the first field is no host name"),
        ("https://example.com/\tFALSE\t/\tFALSE\t0\tsecret\tvalue", "the first field is no host name"),
        ("example.com\tyes\t/\tFALSE\t0\tsecret\tvalue", "the second field must be TRUE or FALSE"),
        ("example.com\tFALSE\tdocs\tFALSE\t0\tsecret\tvalue", "the third field is no path"),
        ("example.com\tFALSE\t/\t1\t0\tsecret\tvalue", "the fourth field must be TRUE or FALSE"),
        ("example.com\tFALSE\t/\tFALSE\tnever\tsecret\tvalue", "the fifth field is no number of seconds since 1970"),
        ("example.com\tFALSE\t/\tFALSE\t0\t\tvalue", "it has no name that can be sent"),
        (
            "example.com\tFALSE\t/\tFALSE\t0\tsecret\tvalue; b=2",
            "name or value hold a character that no header can carry",
        ),
        ("example.com\tFALSE\t/\tFALSE\t0\tsecret\tva\rlue", "name or value hold a character that no header can carry"),
        ("example.com\tFALSE\t/\tFALSE\t0\tsecret\t" + "v" * 9_000, "name and value are longer than 4096 bytes"),
        ("co.uk\tTRUE\t/\tFALSE\t0\tsecret\tvalue", "a cookie for all of co.uk would reach strangers"),
        (
            "example.com\tTRUE\t/\tTRUE\t0\t__Host-secret\tvalue",
            "its name promises more (__Secure-, __Host-) than the line keeps",
        ),
    ],
)
def test_a_bad_line_is_named_nothing_is_taken_and_no_secret_is_told(jar: CookieJar, line: str, problem: str) -> None:
    with pytest.raises(CookieFileInvalid) as caught:
        jar.load_netscape("# cookies\nexample.com\tFALSE\t/\tFALSE\t0\tgood\t1\n" + line)

    assert (caught.value.line, caught.value.problem) == (3, problem)
    assert str(caught.value).startswith(f"line 3 of the cookie file: {problem}")
    assert "secret" not in str(caught.value)
    assert len(jar) == 0


@pytest.mark.parametrize("expires", ["999999999999999", "253402300800", "0", "-1", "-99999", "1893456000.5"])
def test_any_number_of_seconds_is_a_moment_or_the_end_of_the_session(jar: CookieJar, expires: str) -> None:
    jar.load_netscape(f"www.example.com\tFALSE\t/\tFALSE\t{expires}\tid\t1")

    assert jar.header_for(HOME, NOW) == "id=1"


PARTS = st.sampled_from(
    ["id", "=", ";", " ", "\t", "\r\n", "Domain=", "Path=/", "Max-Age=", "Expires=", "9", "Secure", "é", "."]
)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.lists(PARTS | st.characters(), max_size=12).map("".join), max_size=5), st.text(max_size=20))
def test_no_header_and_no_address_make_it_raise_or_break_a_line(headers: list[str], url: str) -> None:
    jar = CookieJar(is_public_suffix)
    jar.store(HOME, headers, NOW)
    jar.store(url, headers, NOW)

    header = jar.header_for(HOME, NOW) or ""

    assert not any(char < " " or char == "\x7f" or char > "\xff" for char in header)
    assert jar.header_for("https://evil.org/", NOW) is None
