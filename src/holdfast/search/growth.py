"""Extends columns by a few entries: new values are written behind the old ones, which are not copied.

The cost depends on the additions since the columns were built (at most an eighth of them), not on their size.
Hosts, groups, languages, authors and combinations are then numbered in the order of arrival.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from holdfast.search.columns import (
    Columns,
    doc_profile_codes,
    doc_profiles,
    months_of,
    page_keys,
    profile_codes,
    profiles_of,
    texts_of,
)
from holdfast.search.places import Places
from holdfast.search.segments import Segment, Table


def grow(before: Columns, added: Segment) -> Columns | None:
    """Return columns extended by a segment's new documents, URLs and rows; `before` stays unchanged.

    None if they have to be rebuilt: a row is much older than the last one or has no URL, a row has waited for a
    document, there is no room left, or another state has extended the same one.
    """
    rows, docs, urls = added.rows, added.documents, added.addresses
    first = _first_place(before, rows)
    if first < before.of_document.fixed:
        return None
    if np.isin(docs["doc"], before.waiting).any():
        return None
    documents = before.documents.grown(docs["doc"].astype(np.int64))
    addresses = before.addresses.grown(urls["url"].astype(np.int64))
    doc, url = documents.places(rows["doc"].astype(np.int64)), addresses.places(rows["url"].astype(np.int64))
    if (url == addresses.none).any():
        return None
    was = (len(before), len(before.documents), len(before.addresses))
    if not before.room.take(was, (was[0] + len(rows), len(documents), len(addresses))):
        return None
    number = len(before.blobs)
    before.blobs.append(added.strings)
    for name, starts, lengths in texts_of(docs, urls):
        getattr(before, name).put(was[2] if name == "urls" else was[1], number, starts, lengths)
    grown = replace(before, documents=documents, addresses=addresses)
    grown = _with_addresses(_with_documents(grown, docs, was[1]), urls, was[2])
    return _with_rows(grown, first, rows, doc, url)


def _first_place(columns: Columns, rows: Table) -> int:
    """Return the place of the first of these rows: the end, unless it is older than existing rows."""
    if not len(rows):
        return len(columns)
    low, high = (int(np.searchsorted(columns.at, rows["at"][0], side=side)) for side in ("left", "right"))
    return low + int(np.searchsorted(columns.ids[low:high], rows["id"][0]))


def _put(columns: Columns, first: int, values: dict[str, Any]) -> None:
    for name, added in values.items():
        getattr(columns, name)[first : first + len(added)] = added


def _with_documents(columns: Columns, docs: Table, first: int) -> Columns:
    languages, language = _named(columns.languages, docs["language"].tolist())
    # The first place is for no author.
    author = np.zeros(len(docs), np.int64)
    named = np.flatnonzero(docs["author"])
    hashes, place, _ = columns.author_hashes.numbered(docs["author"][named].astype(np.int64))
    author[named] = place + 1
    codes = doc_profile_codes(docs, author)
    profiles, profile, new_profiles = columns.doc_profile_codes.numbered(codes)
    _put(
        columns,
        first,
        {
            "doc_flags": docs["flags"],
            "doc_published": docs["published"],
            "doc_profile": profile,
            "doc_print": docs["print"],
            "doc_language": language,
        },
    )
    return replace(
        columns,
        languages=languages,
        author_hashes=hashes,
        doc_profile_codes=profiles,
        doc_profiles=np.concatenate((columns.doc_profiles, doc_profiles(codes[new_profiles]))),
    )


def _named(names: tuple[str, ...], added: Sequence[bytes]) -> tuple[tuple[str, ...], Places]:
    places = {name: place for place, name in enumerate(names)}
    found = [places.setdefault(name.decode(), len(places)) for name in added]
    return tuple(places), np.array(found, np.int32)


def _with_addresses(columns: Columns, urls: Table, first: int) -> Columns:
    hosts, host, new_hosts = columns.hosts.numbered(urls["host"].astype(np.int64))
    groups, group, _ = columns.groups.numbered(urls["group"].astype(np.int64))
    linked = columns.signals.of(urls["group"].astype(np.int64))
    _put(
        columns,
        first,
        {
            "url_length": urls["length"],
            "url_flags": urls["flags"],
            "url_inlinks": linked["inlinks"],
            "url_host": host,
            "url_group": group,
        },
    )
    return replace(
        columns,
        hosts=hosts,
        host_example=np.concatenate((columns.host_example, first + new_hosts)),
        groups=groups,
        of_group=columns.of_group.grown(group, first, len(groups)),
    )


def _with_rows(columns: Columns, first: int, rows: Table, doc: Places, url: Places) -> Columns:
    """Return columns with rows added at `first`; their documents and URLs must exist in the columns."""
    profiles = profiles_of(rows, columns.doc_language[doc])
    codes, profile, new_profiles = columns.profile_codes.numbered(profile_codes(profiles))
    pages, page, _ = columns.pages.numbered(page_keys(columns.url_group[url], rows["source"]))
    by_row: dict[str, Any] = {
        "ids": rows["id"],
        "at": rows["at"],
        "doc": doc,
        "url": url,
        "group": page,
        "profile": profile,
        "flags": rows["flags"],
        "month": months_of(rows["at"]),
        "host": columns.url_host[url],
    }
    missing = rows["doc"][doc == columns.documents.none]
    if first < len(columns):
        # Those from there on move. Older states have them where they are: the columns by row are copied.
        by_row = {name: np.concatenate((getattr(columns, name)[first:], values)) for name, values in by_row.items()}
        order = np.lexsort((by_row["ids"], by_row["at"]))
        by_row = {name: values[order] for name, values in by_row.items()}
        columns.room.leave_rows(first)
    return replace(
        columns,
        **columns.room.more_rows(first, by_row),
        profiles=np.concatenate((columns.profiles, profiles[new_profiles])),
        profile_codes=codes,
        pages=pages,
        waiting=np.union1d(columns.waiting, missing),
        last_id=max(columns.last_id, int(rows["id"].max(initial=-1))),
        of_document=columns.of_document.grown(by_row["doc"], first, columns.documents.none + 1),
        of_address=columns.of_address.grown(by_row["url"], first, columns.addresses.none + 1),
    )
