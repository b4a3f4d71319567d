import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { ApiProblem } from "@/api/problem";
import { useSources } from "@/api/useArchive";
import { Problem } from "@/app/Problem";
import { siteRoute } from "@/app/publicRoutes";
import { ChangeTag } from "@/changes/ChangeTag";
import { Button } from "@/design/Button";
import { DataTable } from "@/design/DataTable";
import { SelectField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { useWords } from "@/language/LanguageContext";
import { useCrawls } from "@/sources/useSource";
import { joined, KINDS, readAskedSite, readLines, type AskedSite, type SiteComparison, type SiteDifference } from "./site";

const AT_ONCE = 2000;
/** Rows that a page shows: more would make it slow, and nobody reads them. */
const LISTED = 1000;

/** GET /api/changes/site, some thousand captures at a time */
function useSiteComparison(from: number | undefined, to: number | undefined) {
  return useInfiniteQuery({
    queryKey: ["site", from, to],
    enabled: from !== undefined && to !== undefined,
    staleTime: Infinity,
    initialPageParam: "",
    queryFn: async ({ signal, pageParam }) => {
      const answer = await fetch(`/api/changes/site?from=${from}&to=${to}&limit=${AT_ONCE}${pageParam ? `&after=${encodeURIComponent(pageParam)}` : ""}`, { signal, credentials: "same-origin" });
      if (!answer.ok) throw await ApiProblem.of(answer);
      return readLines(await answer.text());
    },
    getNextPageParam: (last) => last.next ?? undefined,
  });
}

/** The site as a whole between two crawls: new, gone, changed, moved. */
export function SitePage() {
  const { t } = useWords();
  const asked = readAskedSite({ ...siteRoute.useSearch() });
  const navigate = useNavigate();
  const found = useSiteComparison(asked.from, asked.to);
  const go = (change: Partial<AskedSite>) => void navigate({ to: "/compare/site", search: readAskedSite({ ...asked, ...change }), replace: true, resetScroll: false });
  useEffect(() => { document.title = `${t("site.title")} · Holdfast`; }, [t]);
  const whole = found.data?.pages.reduce(joined);
  return (
    <>
      <h1 className="text-2xl">{t("site.title")}</h1>
      <p className="mt-1 mb-5 text-soft">{t("site.intro")}</p>
      <Pickers asked={asked} onChange={go} />
      <div className="mt-6 min-h-96">
        {found.error ? <Problem problem={found.error} onAgain={() => void found.refetch()} /> : null}
        {(asked.from === undefined || asked.to === undefined) && <Notice title={t("site.title")}>{t("site.pick")}</Notice>}
        {found.isLoading && <p role="status" className="text-soft">{t("app.loading")}…</p>}
        {whole && <Differences whole={whole} asked={asked} onChange={go} />}
        {found.hasNextPage && <div className="mt-4"><Button disabled={found.isFetchingNextPage} onClick={() => void found.fetchNextPage()}>{t("site.more")}</Button></div>}
      </div>
    </>
  );
}

function Pickers({ asked, onChange }: { asked: AskedSite; onChange: (change: Partial<AskedSite>) => void }) {
  const { t, date } = useWords();
  const sources = useSources();
  const code = asked.source ?? sources.data?.[0]?.sourceCode;
  const crawls = useCrawls(code);
  const options = crawls.data?.map((one) => <option key={one.jobId} value={one.jobId}>{`${date(one.lastCapture)} · ${one.jobName}`}</option>);
  return (
    <div className="grid gap-3 sm:grid-cols-3">
      <SelectField label={t("site.source")} value={code ?? ""} onChange={(event) => onChange({ source: event.target.value, from: undefined, to: undefined, kind: undefined })}>
        {sources.data?.map((one) => <option key={one.sourceCode} value={one.sourceCode}>{one.sourceName}</option>)}
      </SelectField>
      <SelectField label={t("site.from")} value={asked.from ?? ""} onChange={(event) => onChange({ from: Number(event.target.value) || undefined })}><option value="">–</option>{options}</SelectField>
      <SelectField label={t("site.to")} value={asked.to ?? ""} onChange={(event) => onChange({ to: Number(event.target.value) || undefined })}><option value="">–</option>{options}</SelectField>
    </div>
  );
}

function Differences({ whole, asked, onChange }: { whole: SiteComparison; asked: AskedSite; onChange: (change: Partial<AskedSite>) => void }) {
  const { t, number } = useWords();
  const rows = whole.differences.filter((one) => !asked.kind || one.type === asked.kind);
  const shown = KINDS.filter((kind) => kind !== "unchanged" && (whole.counts[kind] ?? 0) > 0);
  return (
    <>
      <div role="group" aria-label={t("site.kind")} className="mb-4 flex flex-wrap items-center gap-2">
        {shown.map((kind) => (
          <button key={kind} type="button" aria-pressed={asked.kind === kind} onClick={() => onChange({ kind: asked.kind === kind ? undefined : kind })} className="inline-flex min-h-9 items-center gap-2 rounded-full border border-edge bg-sheet py-1 pr-3 pl-1.5 hover:bg-sunk aria-pressed:border-accent aria-pressed:bg-wash">
            <ChangeTag change={kind} /><span className="tabular-nums">{number(whole.counts[kind] ?? 0)}</span>
          </button>
        ))}
        <span className="text-soft">{t("site.unchanged", { count: whole.counts["unchanged"] ?? 0 })}</span>
      </div>
      <DataTable caption={t("site.title")} rows={rows.slice(0, LISTED)} keyOf={(one) => `${one.type} ${one.url} ${one.fromUrl ?? ""}`} empty={<Notice tone="good" title={t("site.none")} />}
        columns={[
          { head: t("site.kind"), cell: (one) => <ChangeTag change={one.type} /> },
          { head: t("edition.address"), cell: (one) => <Address one={one} /> },
          { head: t("compare.title"), cell: (one) => <Ways one={one} /> },
        ]} />
      {rows.length > LISTED && <p className="mt-3 text-sm text-soft">{t("site.cut", { shown: LISTED, count: rows.length })}</p>}
    </>
  );
}

function Address({ one }: { one: SiteDifference }) {
  const { t } = useWords();
  return (
    <span className="break-all">
      <Link to="/page" search={{ url: one.url }}>{one.url}</Link>
      {one.fromUrl && one.fromUrl !== one.url && <span className="block text-sm text-soft">{t("site.moved", { url: one.fromUrl })}</span>}
    </span>
  );
}

function Ways({ one }: { one: SiteDifference }) {
  const { t } = useWords();
  if (one.type !== "changed" || one.toSnapshotId === null || one.fromSnapshotId === null) return "–";
  return <Link to="/compare" search={{ from: one.fromSnapshotId, to: one.toSnapshotId }} aria-label={`${t("changes.compare")}: ${one.url}`}>{t("changes.compare")}</Link>;
}
