"""Parsers that never raise: pages, style sheets, sitemaps, feeds, and a child process for dangerous input.

Call `looks_pathological` first: if it returns a reason, use a `ParseChild`; if None, `parse_page` in a thread.
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
