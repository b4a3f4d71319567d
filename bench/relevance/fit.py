"""Fits weights on known items: searches for every clause alone once, then tries weights on the scores."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from bench.relevance.engines import answered, page_of
from bench.relevance.manuals import Manual
from bench.relevance.questions import KINDS, Question
from holdfast.clock import SystemClock
from holdfast.search import ranking
from holdfast.search.analysis import languages_of
from holdfast.search.query import plain
from holdfast.search.query_terms import TextWeights, query_terms
from holdfast.search.readers import ReaderCache, View

Scores = npt.NDArray[np.float32]
_NO_WEIGHTS: Final = dict.fromkeys(asdict(TextWeights()), 0.0)


class Features(NamedTuple):
    """The score of each clause for each row of one question; rows are those that any clause found."""

    question: Question
    pages: list[str]
    clauses: dict[str, Scores]
    static: dict[str, Scores]


def fitted(exams: Sequence[tuple[Manual, Path, dict[str, list[Question]]]], rounds: int) -> dict[str, float]:
    """Return weights for all known items of the manuals, from those in use."""
    features = []
    for manual, home, questions in exams:
        view = ReaderCache(home, SystemClock()).view()
        features += [_features(manual, view, question) for kind in KINDS for question in questions[kind]]
    start = {**asdict(TextWeights()), "authority": ranking.AUTHORITY}
    return {name: round(weight, 3) for name, weight in _fit(features, start, rounds).items()}


def _features(manual: Manual, view: View, question: Question) -> Features:
    """Search for every clause of a question alone."""
    columns, reader = view.columns, view.reader
    assert reader is not None
    whole: dict[str, Scores] = {}
    asked, languages = query_terms(plain(question.query), question.query), languages_of(columns.languages)
    for name in _NO_WEIGHTS:
        # Only this clause weighs anything, so that the score is the clause's own.
        alone = TextWeights(**{**_NO_WEIGHTS, name: 1.0})
        for search, numbering, places in (
            (reader.words, columns.documents, columns.doc),
            (reader.addresses, columns.addresses, columns.url),
        ):
            matched = search(asked, languages, alone, limit=reader.entries)
            by_place = np.zeros(numbering.none + 1, np.float32)
            at = numbering.places(matched.keys)
            known = at != numbering.none
            by_place[at[known]] = matched.scores[known]
            whole[name] = whole.get(name, np.float32(0)) + by_place[places]
    rows = np.flatnonzero(sum(whole.values())) if whole else np.empty(0, np.int64)
    static = {"authority": ranking.authority(columns, columns.url[rows])}
    pages = [page_of(manual, columns.urls.at(int(place))) for place in columns.url[rows]]
    return Features(question, pages, {name: scores[rows] for name, scores in whole.items()}, static)


def _score(features: Features, weights: dict[str, float]) -> float:
    """Return the reciprocal rank under these weights."""
    text = np.zeros(len(features.pages), np.float32)
    for name, scores in features.clauses.items():
        text += np.float32(weights.get(name, 0.0)) * scores
    best = float(np.max(text, initial=0.0))
    if best <= 0:
        return 0.0
    total = text / best + sum(weights.get(name, 0.0) * scores for name, scores in features.static.items())
    order = np.argsort(-np.where(text > 0, total, -9), kind="stable")
    return answered(features.question, [features.pages[at] for at in order if text[at] > 0]).reciprocal


def _fit(questions: Sequence[Features], weights: dict[str, float], rounds: int) -> dict[str, float]:
    """Change one weight after the other while that helps; a clause that hardly helps gets no weight."""

    def worth(tried: dict[str, float]) -> float:
        found = [_score(features, tried) for features in questions]
        return float(np.mean(found)) - 0.0002 * sum(1 for weight in tried.values() if weight)

    best = worth(weights)
    for turn in range(rounds):
        before = best
        for name in weights:
            now = weights[name]
            fresh = (0.02, 0.1, 0.3) if name == "authority" else (0.3, 1.0, 3.0, 8.0)
            for tried in (0.0, now * 0.5, now * 0.75, now * 1.33, now * 2, now * 4) if now else fresh:
                if tried != now and (found := worth({**weights, name: tried})) > best + 1e-6:
                    best, weights = found, {**weights, name: tried}
        print(f"round {turn + 1}: {best:.4f}", file=sys.stderr)
        if best - before < 0.0005:
            break
    return weights
