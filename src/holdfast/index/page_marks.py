"""Signs of noise in the markup of a short page that its text does not show, stored with the document for `noise`.

A firewall's challenge, a captcha, a password field, a domain parking service.
"""

from __future__ import annotations

import re
from typing import Final

import re2

SHORT_CHARS: Final = 1_500
"""Pages with more text count as content: their markup is not examined."""
_MOST_BYTES: Final = 48 * 1024
# Most pages have none of these: one pass (22 us for 3 KB; a search for each mark takes 180) skips them.
_ANY: Final = re2.compile(
    rb"(?i)captcha|/challenge-platform|_cf_chl|cf-browser|cf-turnstile|incapsula|awswaf|ddos-guard|sucuri|cp_challenge|parking|"
    rb"parklogic|window\.park|bodis\.com|password"
)

_MARKS: Final[dict[str, tuple[bytes, ...]]] = {
    "challenge": (
        b"cf-browser-verification",
        b"_cf_chl_opt",
        b"captcha-delivery.com",
        b"_incapsula_resource?cwudnsai",
        b"px-captcha",
        b"awswafintegration.checkforcerefresh",
        b"/.well-known/ddos-guard/",
        b"sucuri_cloudproxy",
        b"distil_r_captcha",
        b"/_sec/cp_challenge/",
    ),
    "captcha": (b"g-recaptcha", b"h-captcha", b"hcaptcha.com/1/api.js", b"cf-turnstile", b"/recaptcha/api.js"),
    "parking": (
        b"sedoparking.com",
        b"parkingcrew.net",
        b"bodis.com",
        b"parklogic.com",
        b"/parking-lander/",
        b"window.park =",
    ),
}
# Cloudflare adds scripts below /challenge-platform/ to ordinary pages, too (`/scripts/jsd/main.js`).
_ORCHESTRATE: Final = re.compile(rb"/cdn-cgi/challenge-platform/h/[^\s\"'<>]{1,80}?/orchestrate/")
_PASSWORD: Final = re.compile(rb"type\s{0,8}=\s{0,8}[\"']?password")


def marks_of(body: bytes) -> list[str]:
    start = body[:_MOST_BYTES]
    if _ANY.search(start) is None:
        return []
    low = start.lower()
    found = [name for name, signs in _MARKS.items() if any(sign in low for sign in signs)]
    if "challenge" not in found and b"/challenge-platform/" in low and _ORCHESTRATE.search(low):
        found.append("challenge")
    if b"password" in low and _PASSWORD.search(low):
        found.append("password")
    return found
