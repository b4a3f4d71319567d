import { Link } from "@tanstack/react-router";
import { ApiProblem } from "@/api/problem";
import { Problem } from "@/app/Problem";
import { Button } from "@/design/Button";
import { SelectField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { useCoverage, useEditionComparison, useEditions } from "@/editions/useEditions";
import { useWords } from "@/language/LanguageContext";
import { Differences, Kinds } from "./Differences";
import type { AskedSite } from "./site";
import { useEditionDifferences } from "./useSite";

export function EditionPickers({ code, asked, onChange }: { code: string | undefined; asked: AskedSite; onChange: (change: Partial<AskedSite>) => void }) {
  const { t } = useWords();
  const editions = useEditions(code);
  const years = code ? (editions.data?.pages.flatMap((page) => page.items.map((one) => one.year)) ?? []) : [];
  const options = (some: number[]) => some.map((year) => <option key={year} value={year}>{t("editions.year", { year: String(year) })}</option>);
  const earlier = years.filter((year) => asked.to === undefined || year < asked.to);
  return (
    <>
      <SelectField label={t("site.fromEdition")} value={asked.from ?? ""} onChange={(event) => onChange({ from: Number(event.target.value) || undefined })}><option value="">–</option>{options(earlier)}</SelectField>
      <SelectField label={t("site.toEdition")} value={asked.to ?? ""} onChange={(event) => { const to = Number(event.target.value) || undefined; onChange({ to, ...(to && asked.from && asked.from >= to ? { from: years.find((year) => year < to) } : {}) }); }}><option value="">–</option>{options(years)}</SelectField>
    </>
  );
}

/** Two annual editions of a source, page by page, as they were compared. */
export function EditionsCompared({ code, asked, onChange }: { code: string; asked: AskedSite; onChange: (change: Partial<AskedSite>) => void }) {
  const { t } = useWords();
  if (asked.from === undefined || asked.to === undefined || asked.from >= asked.to) return <Notice title={t("site.title")}>{t("site.pickEditions")}</Notice>;
  return <Compared code={code} earlier={asked.from} year={asked.to} asked={asked} onChange={onChange} />;
}

function Compared({ code, earlier, year, asked, onChange }: { code: string; earlier: number; year: number; asked: AskedSite; onChange: (change: Partial<AskedSite>) => void }) {
  const { t } = useWords();
  const edition = useCoverage(code, year);
  const isCompared = edition.data?.comparedYears.includes(earlier);
  if (edition.error instanceof ApiProblem && edition.error.status === 404) return <Notice title={t("editions.missing")}>{t("editions.missingHow")}</Notice>;
  if (edition.error) return <Problem problem={edition.error} onAgain={() => void edition.refetch()} />;
  if (isCompared === undefined) return <p role="status" className="text-soft">{t("app.loading")}…</p>;
  if (!isCompared) return <Notice title={t("site.notCompared", { from: String(earlier), to: String(year) })} actions={<Link to="/editions/$source/$year" params={{ source: code, year: String(year) }}>{t("editions.year", { year: String(year) })}</Link>}>{t("site.notComparedHow")}</Notice>;
  return <Pages code={code} earlier={earlier} year={year} asked={asked} onChange={onChange} />;
}

function Pages({ code, earlier, year, asked, onChange }: { code: string; earlier: number; year: number; asked: AskedSite; onChange: (change: Partial<AskedSite>) => void }) {
  const { t } = useWords();
  const whole = useEditionComparison(code, year, earlier);
  const found = useEditionDifferences(code, earlier, year, asked.kind);
  const rows = found.data?.pages.flatMap((page) => page.items);
  const counts = whole.data?.counts;
  const total = !counts ? undefined : asked.kind ? counts[asked.kind] : Object.entries(counts).reduce((sum, [kind, count]) => (kind === "unchanged" ? sum : sum + count), 0);
  return (
    <>
      {counts && <Kinds counts={counts} chosen={asked.kind} onChoose={(kind) => onChange({ kind })} />}
      {found.error ? <Problem problem={found.error} onAgain={() => void found.refetch()} /> : null}
      {found.isLoading && <p role="status" className="text-soft">{t("app.loading")}…</p>}
      {rows && <div className={found.isPlaceholderData ? "opacity-60" : ""}><Differences rows={rows} kind={asked.kind} /></div>}
      {found.hasNextPage && <div className="mt-4 flex flex-wrap items-center gap-3"><Button disabled={found.isFetchingNextPage} onClick={() => void found.fetchNextPage()}>{t("editions.more")}</Button>{rows && total !== undefined && <p className="text-sm text-soft">{t("site.shown", { shown: rows.length, count: total })}</p>}</div>}
      <p className="mt-4 text-sm"><a href={`/api/coverage/${encodeURIComponent(code)}/${year}/comparison-${earlier}.csv`} download>{t("edition.file.comparison", { year: String(earlier) })}</a></p>
    </>
  );
}
