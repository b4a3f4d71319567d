"""`python -m bench.relevance`: whether search finds every visible word, and how often the right page comes first.

Recall: words that at most two pages of a manual show; the share of which search returns such a page. Known items: exact
headings, entries of the manual's index, one-line descriptions and texts of links, with the page that they belong to;
the mean reciprocal rank of that page. Both look at twenty results of `SearchService`, as pages. Beside each figure is
that of SQLite's FTS5 on the same visible text: all words first, any word where no page has all, titles weighted five
times. FTS5 splits unspaced languages into trigrams.

The manuals are divided into two halves. Look at misses, and fit weights, on the tuning half; the other half reports.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from bench.relevance.cost import milliseconds
from bench.relevance.engines import Answer, archive_of, opened
from bench.relevance.fit import fitted
from bench.relevance.manuals import HALVES, MANUALS, Manual, unpacked
from bench.relevance.questions import KINDS, Question, known_items, rare_words
from bench.relevance.visible import Page, visible_pages

Figures = dict[str, Any]


class Exam:
    """A manual with its pages and questions, ready to be searched."""

    def __init__(self, manual: Manual, options: argparse.Namespace, work: Path) -> None:
        tree = unpacked(manual, work)
        self.manual = manual
        self.pages: dict[str, Page] = visible_pages(manual, tree, work)
        self.home = archive_of(manual, tree, work, fresh=options.fresh_index)
        self.questions: dict[str, list[Question]] = {"recall": rare_words(manual, self.pages, options.words)}
        self.questions |= known_items(manual, self.pages, tree / manual.folder, options.items)


def measured(exam: Exam, misses: int) -> Figures:
    """Ask both searches all questions and return the figures; print the first misses of ours."""
    figures: Figures = {
        "manual": exam.manual.name, "language": exam.manual.language, "pages": len(exam.pages),
        "questions": {kind: len(asked) for kind, asked in exam.questions.items()},
    }  # fmt: skip
    with opened(exam.manual, exam.home, exam.pages) as searches:
        for name, answer in zip(("ours", "fts5"), (searches[0].answer, searches[1].answer), strict=True):
            answers = {kind: [answer(one) for one in asked] for kind, asked in exam.questions.items()}
            figures[name] = {kind: _figure(kind, found) for kind, found in answers.items() if found}
            if exam.manual.half == HALVES[0]:
                figures[f"{name} ranks"] = {
                    kind: {one.question.query: one.rank for one in found} for kind, found in answers.items()
                }
            if name == "ours":
                _print_misses(exam.manual, answers, misses)
    return figures


def _figure(kind: str, answers: Sequence[Answer]) -> float:
    return round(mean(bool(one.rank) if kind == "recall" else one.reciprocal for one in answers), 4)


def _print_misses(manual: Manual, answers: dict[str, list[Answer]], count: int) -> None:
    for kind, found in answers.items():
        late = [one for one in found if not one.rank or (kind != "recall" and one.rank > 2)]
        for one in late[:count]:
            print(f"  {manual.name} {kind} {one.rank or '-'}: {one.question.query!r} -> {sorted(one.question.pages)}",
                  file=sys.stderr)  # fmt: skip


def table(rows: Sequence[Figures]) -> str:
    """Return the figures as a table, ours and FTS5's side by side, with the mean over manuals."""
    kinds = ("recall", *KINDS)
    average: Figures = {"manual": "mean", "language": "", "pages": sum(row["pages"] for row in rows)}
    for name in ("ours", "fts5"):
        average[name] = {
            kind: mean(found) for kind in kinds if (found := [row[name][kind] for row in rows if kind in row[name]])
        }
    lines = [f"{'manual':<18}{'lang':<5}{'pages':>6}" + "".join(f"{kind:>15}" for kind in kinds)]
    for row in (*rows, average):
        cells = [f"{row['ours'][kind]:.3f} / {row['fts5'][kind]:.3f}" if kind in row["ours"] else "-" for kind in kinds]
        lines.append(
            f"{row['manual']:<18}{row['language']:<5}{row['pages']:>6}" + "".join(f"{one:>15}" for one in cells)
        )
    return "\n".join([*lines, "ours / FTS5; recall is a share of rare words, the other columns are MRR at 20"])


def main() -> None:
    """Print the table of a half and save its figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=HALVES, default=HALVES[0])
    parser.add_argument("--manual", nargs="*", help="only these manuals of the half")
    parser.add_argument("--work", type=Path, help="keep packages, visible text and archives in this folder")
    parser.add_argument("--fresh-index", action="store_true", help="build the archives again with the present code")
    parser.add_argument("--words", type=int, default=100, help="rare words of each manual")
    parser.add_argument("--items", type=int, default=60, help="known items of each kind and manual")
    parser.add_argument("--misses", type=int, default=0, help="print so many misses of each kind and manual")
    parser.add_argument("--fit", type=int, default=0, metavar="ROUNDS", help="only search for weights (tuning half)")
    parser.add_argument("--cost", type=int, default=0, metavar="PAIRS", help="only print CPU of two-word searches")
    parser.add_argument("--save", type=Path, help="default: results/HALF.json in the work folder")
    options = parser.parse_args()
    if options.fit and options.half != HALVES[0]:
        parser.error("--fit needs --half tuning")
    with tempfile.TemporaryDirectory() as scratch:
        run(options, options.work or Path(scratch))


def run(options: argparse.Namespace, work: Path) -> None:
    """Measure the chosen manuals, or fit weights on them."""
    half = {manual.name: manual for manual in MANUALS if manual.half == options.half}
    if unknown := sorted(set(options.manual or ()) - set(half)):
        sys.exit(f"no manual {unknown[0]!r} in the {options.half} half; expected some of: {', '.join(half)}")
    exams, rows = (Exam(half[name], options, work) for name in options.manual or half), []
    if options.fit:
        print(json.dumps(fitted([(one.manual, one.home, one.questions) for one in exams], options.fit)))
        return
    if options.cost:
        for exam in exams:
            spent = milliseconds(exam.manual, exam.home, exam.pages, options.cost)
            print(f"{exam.manual.name}: {spent:.1f} ms of CPU", flush=True)
        return
    for exam in exams:
        started = time.monotonic()
        rows.append(measured(exam, options.misses))
        print(f"{exam.manual.name}: {time.monotonic() - started:.0f} s of searches", file=sys.stderr, flush=True)
    print(table(rows))
    target = options.save or work / "results" / f"{options.half}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(rows, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main()
