import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { Problem } from "@/app/Problem";
import { sourceRoute } from "@/app/publicRoutes";
import { useSources } from "@/api/useArchive";
import { ChangeList } from "@/changes/ChangeList";
import { useChanges } from "@/changes/useChanges";
import { buttonClass } from "@/design/Button";
import { Card, Figure } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { Notice } from "@/design/Notice";
import { EditionCard } from "@/editions/EditionCard";
import { useEditions } from "@/editions/useEditions";
import { useWords } from "@/language/LanguageContext";
import { barsOf } from "@/search/spans";
import { TimeBars } from "@/search/TimeBars";
import { before, markOf } from "./crawls";
import { useCrawls, useSourceOverTime, type Crawl } from "./useSource";

/** One source: what is kept of it, crawl by crawl and year by year. */
export function SourcePage() {
  const { t, number, date } = useWords();
  const { code } = sourceRoute.useParams();
  const { data, error, refetch } = useSources();
  const source = data?.find((one) => one.sourceCode === code);
  useEffect(() => { document.title = `${source?.sourceName ?? code} · Holdfast`; }, [source, code]);
  if (error) return <><h1 className="mb-4 text-2xl">{t("sources.title")}</h1><Problem problem={error} onAgain={() => void refetch()} /></>;
  if (data && !source) return <><h1 className="mb-4 text-2xl">{t("sources.title")}</h1><Notice title={t("sources.missing")} actions={<Link to="/sources" className={buttonClass("main")}>{t("sources.all")}</Link>}>{t("sources.missingHow")}</Notice></>;
  if (!source) return <div className="min-h-[60dvh]" />;
  return (
    <div className="space-y-6">
      <div>
        <p className="text-sm"><Link to="/sources">{t("sources.title")}</Link></p>
        <h1 className="text-2xl break-words">{source.sourceName}</h1>
        {source.baseUrl && <p className="mt-1 break-all text-soft">{source.baseUrl}</p>}
        {source.description && <p className="mt-3 max-w-2xl">{source.description}</p>}
        <p className="mt-4 flex flex-wrap gap-2">
          {source.baseUrl && source.entryRecordId !== null && <Link to="/view/$timestamp" params={{ timestamp: "latest" }} search={{ url: source.baseUrl }} className={buttonClass("main")}>{t("sources.open")}</Link>}
          <Link to="/search" search={{ source: code }} className={buttonClass()}>{t("sources.search")}</Link>
          <Link to="/changes" search={{ source: code }} className={buttonClass()}>{t("sources.changes")}</Link>
          <Link to="/compare/site" search={{ source: code }} className={buttonClass()}>{t("compare.site")}</Link>
        </p>
      </div>
      <dl className="grid grid-cols-1 gap-3 xs:grid-cols-2 sm:grid-cols-3">
        <Figure label={t("home.captures")} value={number(source.recordCount)} />
        <Figure label={t("home.oldest")} value={date(source.firstCapture)} />
        <Figure label={t("home.newest")} value={date(source.lastCapture)} />
      </dl>
      <OverTime code={code} />
      <Editions code={code} />
      <div className="grid items-start gap-6 lg:grid-cols-[3fr_2fr]"><Crawls code={code} /><Latest code={code} /></div>
    </div>
  );
}

function OverTime({ code }: { code: string }) {
  const { t } = useWords();
  const navigate = useNavigate();
  const { data, error } = useSourceOverTime(code);
  const bars = data ? barsOf(data.histogram.buckets, data.histogram.unit) : [];
  if (error || (data && bars.length < 2)) return null;
  return <Card title={t("sources.through")} className="min-h-36"><TimeBars bars={bars} label={t("sources.through")} onSpan={(from, to) => void navigate({ to: "/search", search: { source: code, from, to, view: "snapshots" } })} /></Card>;
}

function Editions({ code }: { code: string }) {
  const { t } = useWords();
  const { data } = useEditions(code);
  const editions = data?.pages.flatMap((page) => page.items) ?? [];
  if (editions.length === 0) return null;
  return (
    <section>
      <h2 className="mb-3 text-lg">{t("sources.editions")}</h2>
      <ul className="grid gap-4 sm:grid-cols-2 lg:grid-cols-4">{editions.slice(0, 8).map((edition) => <li key={edition.year}><EditionCard edition={edition} isNamed={false} /></li>)}</ul>
    </section>
  );
}

function Crawls({ code }: { code: string }) {
  const { t, number, date } = useWords();
  const { data, error, refetch } = useCrawls(code);
  const earlier = (crawl: Crawl) => before(data ?? [], crawl)?.jobId;
  return (
    <Card title={t("sources.crawls")} className="min-h-56">
      {error ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      {data && (
        <DataTable caption={t("sources.crawls")} rows={data.slice(0, 10)} keyOf={(one) => one.jobId} empty={<p className="text-soft">{t("sources.crawlsNone")}</p>}
          columns={[
            { head: t("sources.crawl"), cell: (one) => <><span className="break-all">{one.jobName}</span><Mark crawl={one} /></> },
            { head: t("sources.crawlSpan"), cell: (one) => (one.firstCapture === one.lastCapture ? date(one.lastCapture) : `${date(one.firstCapture)} – ${date(one.lastCapture)}`) },
            { head: t("sources.size"), isNumber: true, cell: (one) => number(one.recordCount) },
            { head: "", cell: (one) => <span className="flex flex-col items-end gap-1 text-sm whitespace-nowrap sm:items-start"><a href={`/api/executions/${one.jobId}/wacz`} download aria-label={`${t("sources.wacz")}: ${one.jobName}`}>{t("sources.wacz")}</a>{earlier(one) !== undefined && <Link to="/compare/site" search={{ source: code, from: earlier(one), to: one.jobId }} aria-label={`${t("sources.compareShort")}: ${one.jobName}`}>{t("sources.compareShort")}</Link>}</span> },
          ]} />
      )}
    </Card>
  );
}

function Mark({ crawl }: { crawl: Crawl }) {
  const { t } = useWords();
  const mark = markOf(crawl);
  return mark && <span className="block text-sm text-soft">{t(mark)}</span>;
}

function Latest({ code }: { code: string }) {
  const { t } = useWords();
  const { data, error, refetch } = useChanges({ source: code }, 6);
  return (
    <Card title={t("sources.latest")} actions={<Link to="/changes" search={{ source: code }}>{t("home.allChanges")}</Link>} className="min-h-56">
      {error && !data ? <Problem problem={error} onAgain={() => void refetch()} /> : data && data.results.length === 0 ? <p className="text-soft">{t("changes.noneHow")}</p> : <ChangeList changes={data?.results ?? []} isShort />}
    </Card>
  );
}
