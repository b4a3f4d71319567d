"""The script that stands before an archived page's own: stand-ins for what its sandbox refuses (`shim.js`)."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources

from holdfast.replay.links import Links


@cache
def _source() -> str:
    """Return the program, up to its argument, without comments and indentation."""
    lines = (resources.files("holdfast.replay") / "shim.js").read_text("utf-8").splitlines()
    return "\n".join(bare for line in lines if (bare := line.strip()) and not bare.startswith("//"))


def shim_for(url: str, links: Links, origin: str, site: str) -> str:
    """Return the element to put before everything else in a page, in ASCII, as HTML and XML read it alike.

    `origin` is that of the replay host, `site` what `site_of` says of the address.
    """
    page = {
        "url": url,
        "origin": origin,
        "digits": links.digits,
        "modifier": links.modifier.value,
        "site": site,
        "pass": links.site_pass,
    }
    told = json.dumps(page).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f"<script>//<![CDATA[\n{_source()}{told});\n//]]></script>"
