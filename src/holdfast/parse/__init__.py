"""Bytes in, values out, never raises: pages, style sheets, sitemaps, feeds, and a child for what looks dangerous.

A caller asks `looks_pathological` first: a word sends the body to a `ParseChild`, None to `parse_page` in a thread.
"""

from holdfast.parse.addresses import NamedUrls, css_links
from holdfast.parse.charset import ParseProblem, decode_text
from holdfast.parse.child import ParseChild
from holdfast.parse.feed import FeedEntry, FeedForm, FeedParse, SitemapParse, parse_feed, parse_sitemap
from holdfast.parse.page import ReadingOptions, looks_pathological, parse_page, scan_links
from holdfast.parse.scripts import script_links

__all__ = [
    "FeedEntry",
    "FeedForm",
    "FeedParse",
    "NamedUrls",
    "ParseChild",
    "ParseProblem",
    "ReadingOptions",
    "SitemapParse",
    "css_links",
    "decode_text",
    "looks_pathological",
    "parse_feed",
    "parse_page",
    "parse_sitemap",
    "scan_links",
    "script_links",
]
