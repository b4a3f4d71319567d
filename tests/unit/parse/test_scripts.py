"""What scripts import or start as workers, where the address is a literal."""

from __future__ import annotations

import time

import pytest

from holdfast.parse import NamedUrls, parse_page, script_links
from tests import patience


def _named(script: str, *, is_inline: bool = True) -> list[str]:
    found = NamedUrls()
    script_links(script, found, is_inline=is_inline)
    return list(found)


def _resources(markup: str) -> list[str]:
    page = parse_page(markup.encode(), url="http://x/", media_type="text/html", charset=None)
    return [link.url for link in page.resources]


@pytest.mark.parametrize(
    ("script", "urls"),
    [
        ("import './a.js';", ["./a.js"]),
        ("import a from './a.js'", ["./a.js"]),
        ('import{a as b,c}from"../a.js";import*as d from"/d.js";', ["../a.js", "/d.js"]),
        ("import a, {\n  b,\n  c,\n} from 'https://cdn.example/m.js'", ["https://cdn.example/m.js"]),
        ("export * from './a.js'; export {x} from './b.js'", ["./a.js", "./b.js"]),
        ("export default './a.js'; export const x = './b.js'", []),
        ("const m = await import( './lazy.js' )", ["./lazy.js"]),
        ("import(`./plain.js`); import(`./${name}.js`); import(name + '.js')", ["./plain.js"]),
        ("import React from 'react'; import('lodash')", []),
        ("import.meta.url; x.import('./no.js'); reimport('./no.js'); important = './no.js'", []),
        ("new Worker('worker.js'); new SharedWorker(\"/shared.js\", 'n')", ["worker.js", "/shared.js"]),
        ("navigator.serviceWorker.register('/sw.js', {scope: '/'})", ["/sw.js"]),
        ("importScripts('one.js', \"two.js\", three)", ["one.js", "two.js"]),
        ("import 'data:text/javascript,1'; new Worker('blob:x')", []),
    ],
)
def test_literal_addresses_of_a_script_are_found(script: str, urls: list[str]) -> None:
    assert _named(script) == urls


def test_worker_in_an_external_script_is_taken_only_if_absolute() -> None:
    script = "new Worker('w.js'); new Worker('/w.js'); import './m.js'; importScripts('s.js')"

    assert _named(script, is_inline=False) == ["/w.js", "./m.js", "s.js"]


def test_inline_scripts_name_their_modules() -> None:
    markup = """<script type=module>import './m.js'</script><script>import('/lazy.js')</script>
    <script type="application/ld+json">{"x": "import './no.js'"}</script><script src=a.js>import './no.js'</script>
    <script type=importmap>{"imports": {"a": "/a.mjs", "b/": "/b/", "c": 1}, "scopes": {"/x/": {"d": "./d.mjs"}}}
    </script><script type=importmap>[broken</script>"""

    assert _resources(markup) == ["./m.js", "/lazy.js", "a.js", "/a.mjs", "./d.mjs"]


def test_lazy_and_imported_documents_are_requisites() -> None:
    markup = """<img data-src=/i.png data-srcset="/j.png 2x"><iframe src=about:blank data-src=/f.html></iframe>
    <video data-src=/v.mp4></video><picture><source data-src=/s.webm data-srcset="/k.png 1x"></picture>
    <link rel=import href=/part.html><link rel=modulepreload href=/pre.mjs>"""

    assert sorted(_resources(markup)) == [
        *("/f.html", "/i.png", "/j.png", "/k.png", "/part.html", "/pre.mjs", "/s.webm", "/v.mp4"),
    ]


@pytest.mark.parametrize("unit", ["import ", "import{", "export a,", "new Worker(", "import('", "importScripts('a',"])
def test_flood_of_import_words_is_read_in_bounded_time(unit: str) -> None:
    started = time.process_time()
    _named(unit * 200_000)

    assert time.process_time() - started < patience.allowed(2.0)
