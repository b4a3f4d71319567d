"""A query on one view with all its restrictions: the parameters of a request and its operators."""

from __future__ import annotations

from dataclasses import replace
from typing import Generic

import numpy as np

from holdfast.errors import Invalid
from holdfast.search.conditions import Conditions, narrowed
from holdfast.search.counting import Filters, Gate, Keep, newest, passing
from holdfast.search.matching import Match, browsed
from holdfast.search.places import Rows
from holdfast.search.query import Intent, ParsedQuery, parse_query
from holdfast.search.readers import Kept, ResultCache
from holdfast.search.substrings import Budget


class BadOperator(Invalid):
    """An operator with an invalid value, or in a place where it is not allowed."""

    code = "bad_operator"


def question_of(q: str | None, *, like: int | None = None) -> ParsedQuery:
    """Return the parsed query, with a capture for similarity search; raise BadOperator if it is invalid."""
    question = parse_query(q or "")
    if question.problem is not None:
        raise BadOperator(question.problem)
    if like is not None:
        if question.like not in (None, like):
            raise BadOperator("`like` and like: name two captures; ask for one")
        question = replace(question, like=like)
    if question.like is not None and question.has_words:
        raise BadOperator("like: cannot be combined with search words; operators are allowed")
    return question


def operators_alone(text: str | None) -> ParsedQuery:
    question = question_of(text)
    if question.has_words or question.like is not None:
        raise BadOperator("`where` accepts operators only (not like:)")
    # Their own words rank nothing here.
    return replace(question, intent=Intent.BROWSE)


def with_operators(words: str | None, question: ParsedQuery) -> str | None:
    return f"{words} {question.operators}" if words and question.operators else words


class FilteredRows(Generic[Kept]):
    def __init__(
        self, cache: ResultCache[Kept], question: ParsedQuery, gate: Gate, budget: Budget, filters: Filters
    ) -> None:
        self.cache, self.question, self.gate, self.budget = cache, question, gate, budget
        self.filters = narrowed(filters, question.conditions)
        self._conditions: Conditions | None = None
        # An index without a reader is empty: there is nothing to judge.
        if question.conditions and cache.view.reader is not None:
            self._conditions = Conditions(
                cache.view.reader,
                cache.view.columns,
                gate,
                budget,
                noise=filters.noise,
                newest_first=question.intent is Intent.BROWSE,
            )
            self._conditions.know_hosts(cache.hosts, question.conditions)
            self.filters = replace(self.filters, hosts=self._conditions.hosts(question.conditions), conditioned=True)

    @property
    def complete(self) -> bool:
        return self._conditions is None or self._conditions.complete

    def browsed(self, *, most: int) -> Match:
        """Return matches without words: the rows selected by operators, otherwise the newest that pass the filters."""
        beginning = None if self._conditions is None else self._conditions.beginning(self.question.conditions)
        if beginning is not None:
            return browsed(beginning, complete=True)
        rows, complete = newest(self.cache.view.columns, self.filters, self.cache.owned(), most=most)
        return browsed(rows, complete=complete)

    def passing(self, rows: Rows) -> Keep:
        keep = passing(self.cache.view.columns, rows, self.gate, self.filters)
        if self._conditions is not None:
            at = np.flatnonzero(keep)
            keep[at] = self._conditions.keep(self.question.conditions, rows[at])
        return keep
