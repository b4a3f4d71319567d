"""Writes the README beside this file from the table of pages: `python -m tests.site.readme`."""

from __future__ import annotations

from pathlib import Path

from tests.site.pages import GROUPS

README = Path(__file__).with_name("README.md")

_INTRODUCTION = """\
# A misbehaving web

Every server that a crawler meets in its nightmares, on loopback. One port, chosen by the kernel, answers on the
addresses 127.0.0.2, 127.0.0.3 and so on, one for each host; every host has every page below.

```python
from tests.site import Site, judge

with Site.start(hosts=8, robots={1: "disallow"}, tls="expired") as site:  # or the fixture `site`
    site.url(0, "/slow/body?every=0.1")  # http://127.0.0.2:PORT/slow/body?every=0.1
    site.url(0, "/", scheme="https")  # the second, encrypted port
    site.serve("/mine", "<p>my own page</p>")  # a fixed page of the test's own
    site.on("/odd", handler)  # or any coroutine that takes an Exchange
    site.robots(2, "timeout")  # another robots.txt for host 2
    site.log()  # every request, in order of arrival
    assert judge(site.settled(), delay_s=1.0) == []  # nobody was asked twice at once, or too soon
```

`Site.plain(hosts=40, pages=40)` is an ordinary generated web in a process of its own, for tests of speed, kills and
politeness; `urls()` lists every page of it. `rough=True` adds 503 answers with Retry-After and links that lead, by
redirect, to other hosts. By hand: `python -m tests.site --hosts 4`, then open the `zoo` address that it prints.

**The log is the judge.** A request starts when the kernel received its first byte (a socket timestamp, so that a busy
machine does not blur it) and ends when its last byte left or the client hung up. Times are monotonic seconds, the same
for all processes of the machine. `judge` finds overlapping requests, starts closer than the delay, and Retry-After not
obeyed.

Pages are in `pages/`, a group a file. To add one, put a line into the table of its group, or decorate a coroutine with
`@group.page(name, story)`, prove in `tests/unit/site` that it misbehaves, and run `python -m tests.site.readme`.
"""


def render() -> str:
    """Return the README as it should be."""
    parts = [_INTRODUCTION]
    for group in GROUPS.values():
        parts.append(
            f"\n## /{group.name}/\n\n{group.story[0].upper()}{group.story[1:]}.\n\n| page | what it does |\n|---|---|\n"
        )
        parts += [f"| `{page.path}` | {_cell(page.story)} |\n" for page in group.pages.values()]
    return "".join(parts)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    README.write_text(render())
