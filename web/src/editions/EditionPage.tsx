import { Link } from "@tanstack/react-router";
import { useEffect } from "react";
import { ApiProblem } from "@/api/problem";
import { Problem } from "@/app/Problem";
import { editionRoute } from "@/app/publicRoutes";
import { buttonClass } from "@/design/Button";
import { Card } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { ChangeTag } from "@/changes/ChangeTag";
import { readAskedSite } from "@/compare/site";
import { useWords } from "@/language/LanguageContext";
import { readAskedEdition } from "./asked";
import { Addresses } from "./Addresses";
import { CoverageFlow } from "./CoverageFlow";
import { StatusTag } from "./EditionCard";
import { useCoverage, useEditionComparison, useEditions, type Coverage } from "./useEditions";

interface Frozen { at: string; digest: string; captures: number }

function frozenOf(found: Coverage): Frozen | null {
  const frozen = found.coverageSummary["frozen"];
  return typeof frozen === "object" && frozen !== null ? (frozen as Frozen) : null;
}

/** One edition: its coverage with the addresses behind it, the year before, downloads, and how to cite it. */
export function EditionPage() {
  const { t } = useWords();
  const { source, year } = editionRoute.useParams();
  const { data, error, refetch } = useCoverage(source, Number(year));
  useEffect(() => { document.title = `${data ? t("editions.one", { source: data.sourceName, year }) : t("editions.title")} · Holdfast`; }, [data, year, t]);
  if (error instanceof ApiProblem && (error.status === 404 || error.status === 422)) return <><h1 className="mb-4 text-2xl">{t("editions.title")}</h1><Notice title={t("editions.missing")} actions={<Link to="/editions" className={buttonClass("main")}>{t("editions.title")}</Link>}>{t("editions.missingHow")}</Notice></>;
  if (error) return <><h1 className="mb-4 text-2xl">{t("editions.title")}</h1><Problem problem={error} onAgain={() => void refetch()} /></>;
  return <div className="min-h-[60dvh]">{data && <Edition found={data} />}</div>;
}

function Edition({ found }: { found: Coverage }) {
  const { t } = useWords();
  const asked = readAskedEdition({ ...editionRoute.useSearch() });
  const place = { source: found.sourceCode, year: String(found.year) };
  const frozen = frozenOf(found);
  const notes = Array.isArray(found.coverageSummary["notes"]) ? (found.coverageSummary["notes"] as string[]) : [];
  return (
    <div className="space-y-6">
      <div>
        <p className="text-sm"><Link to="/editions">{t("editions.title")}</Link></p>
        <h1 className="text-2xl break-words">{found.sourceName}</h1>
        <p className="mt-2 flex flex-wrap items-center gap-2"><span className="font-serif text-lg">{t("editions.year", { year: place.year })}</span><StatusTag status={found.status} />{frozen && <Tag>{t("editions.frozen")}</Tag>}<Link to="/sources/$code" params={{ code: found.sourceCode }} className="ml-auto">{t("site.source")}</Link></p>
      </div>
      <Card title={t("edition.coverage")}>
        {found.generatedAt ? <><p className="mb-4 text-soft">{t("edition.coverageHow")}</p><CoverageFlow summary={found.coverageSummary} intended={found.intendedUrlCount} place={place} asked={asked} /></> : <p className="text-soft">{t("editions.notCounted")}</p>}
      </Card>
      <Addresses source={found.sourceCode} year={found.year} asked={asked} />
      <div className="grid gap-6 lg:grid-cols-2"><Before found={found} /><Downloads found={found} frozen={frozen} /></div>
      <Cite found={found} frozen={frozen} />
      {notes.length > 0 && <Card title={t("edition.notes")}><ul lang="en" className="list-disc space-y-1 pl-5 text-soft">{notes.map((note) => <li key={note}>{note}</li>)}</ul></Card>}
    </div>
  );
}

const FIGURES = [["intendedUrlCount", "edition.intended"], ["capturedUrlCount", "outcome.captured"], ["failedUrlCount", "outcome.failed"], ["missingUrlCount", "outcome.not_reached"], ["excludedUrlCount", "outcome.excluded"]] as const;

function Before({ found }: { found: Coverage }) {
  const { t, number } = useWords();
  const editions = useEditions(found.sourceCode);
  const before = editions.data?.pages.flatMap((page) => page.items).find((one) => one.year < found.year);
  const against = before && found.comparedYears.includes(before.year) ? before.year : undefined;
  const comparison = useEditionComparison(found.sourceCode, found.year, against);
  if (!before) return <Card title={t("edition.before", { year: String(found.year - 1) })}><p className="text-soft">{t("edition.noBefore")}</p></Card>;
  const difference = (now: number, then: number) => (now === then ? "±0" : `${now > then ? "+" : "−"}${number(Math.abs(now - then))}`);
  return (
    <Card title={t("edition.before", { year: String(before.year) })} actions={<Link to="/editions/$source/$year" params={{ source: found.sourceCode, year: String(before.year) }}>{t("editions.year", { year: String(before.year) })}</Link>}>
      {comparison.data ? (
        <ul className="mb-4 flex flex-wrap gap-x-5 gap-y-2">{Object.entries(comparison.data.counts).filter(([, count]) => count > 0).map(([kind, count]) => <li key={kind}><Link to="/compare/site" search={readAskedSite({ of: "editions", source: found.sourceCode, from: before.year, to: found.year, kind })} className="flex min-h-6 items-center gap-2"><ChangeTag change={kind} /><span className="tabular-nums">{number(count)}</span></Link></li>)}</ul>
      ) : <p className="mb-3 text-sm text-soft">{t("edition.notCompared")}</p>}
      <DataTable caption={t("edition.before", { year: String(before.year) })} rows={[...FIGURES]} keyOf={([name]) => name} empty=""
        columns={[
          { head: t("edition.figure"), cell: ([, word]) => t(word, { count: 2 }) },
          { head: String(before.year), isNumber: true, cell: ([name]) => number(before[name]) },
          { head: String(found.year), isNumber: true, cell: ([name]) => number(found[name]) },
          { head: "±", isNumber: true, cell: ([name]) => difference(found[name], before[name]) },
        ]} />
      {comparison.data && <p className="mt-3"><Link to="/compare/site" search={{ of: "editions", source: found.sourceCode, from: before.year, to: found.year }}>{t("edition.pages")}</Link></p>}
      {comparison.data && <p className="mt-1"><a href={`/api/coverage/${found.sourceCode}/${found.year}/comparison-${before.year}.csv`} download>{t("edition.file.comparison", { year: String(before.year) })}</a></p>}
    </Card>
  );
}

function Downloads({ found, frozen }: { found: Coverage; frozen: Frozen | null }) {
  const { t } = useWords();
  const base = `/api/coverage/${found.sourceCode}/${found.year}`;
  return (
    <Card title={t("edition.downloads")}>
      <ul className="space-y-2">
        {found.generatedAt && <li><a href={`${base}/coverage.csv`} download>{t("edition.file.coverage")}</a></li>}
        {found.generatedAt && <li><a href={`${base}/coverage-report.json`} download>{t("edition.file.report")}</a></li>}
        {frozen && <li><a href={`${base}/frozen.jsonl`} download>{t("edition.file.frozen")}</a></li>}
        <li><a href={`${base}/edition.wacz`} download>{t("edition.file.wacz")}</a></li>
      </ul>
    </Card>
  );
}

function Cite({ found, frozen }: { found: Coverage; frozen: Frozen | null }) {
  const { t, date } = useWords();
  const parts = [found.sourceName, t("editions.year", { year: String(found.year) }), frozen ? `${date(frozen.at)}, ${frozen.digest}` : "", `${location.origin}/editions/${found.sourceCode}/${found.year}`];
  return (
    <Card title={t("edition.cite")}>
      <p className="rounded-part bg-sunk p-3 font-mono text-sm [overflow-wrap:anywhere]">{parts.filter(Boolean).join(". ")}</p>
      <p className="mt-2 text-sm text-soft">{t(frozen ? "edition.citeFrozen" : "edition.citeOpen")}</p>
    </Card>
  );
}
