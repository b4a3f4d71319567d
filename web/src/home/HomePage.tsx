import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { Problem } from "@/app/Problem";
import { Card, Figure } from "@/design/Card";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { useWords } from "@/language/LanguageContext";
import { SearchBox } from "@/search/SearchBox";
import { barsOf } from "@/search/spans";
import { TimeBars } from "@/search/TimeBars";
import { useCapturesOverTime, useLatestChanges, useSources, useStats } from "@/api/useArchive";

/** What this archive holds, and one box to ask it. */
export function HomePage() {
  const { t } = useWords();
  const navigate = useNavigate();
  useEffect(() => { document.title = `Holdfast · ${t("app.tagline")}`; }, [t]);
  return (
    <div className="space-y-8">
      <section className="mx-auto max-w-3xl pt-4 text-center sm:pt-10">
        <h1 className="mb-6 text-3xl sm:text-4xl">{t("home.title")}</h1>
        <SearchBox isFirst onAsk={(q) => void navigate({ to: "/search", search: q ? { q } : {} })} />
      </section>
      <Figures />
      <OverTime />
      <div className="grid gap-6 lg:grid-cols-2"><LatestChanges /><Kept /></div>
    </div>
  );
}

function Figures() {
  const { t, number, date } = useWords();
  const { data, error, refetch } = useStats();
  if (error) return <Problem problem={error} onAgain={() => void refetch()} />;
  if (data && data.snapshotsTotal === 0) return <Notice title={t("home.empty")}>{t("home.emptyHow")}</Notice>;
  const shown = (value: number | undefined) => (value === undefined ? "\u2007" : number(value));
  return (
    <dl className="grid grid-cols-2 gap-3 sm:grid-cols-4">
      <Figure label={t("home.captures")} value={shown(data?.snapshotsTotal)} />
      <Figure label={t("home.pages")} value={shown(data?.pagesTotal)} />
      <Figure label={t("home.sources")} value={shown(data?.sourcesTotal)} />
      <Figure label={t("home.newest")} value={data?.latestCaptureDate ? date(data.latestCaptureDate) : "\u2007"} />
    </dl>
  );
}

function OverTime() {
  const { t } = useWords();
  const navigate = useNavigate();
  const { data } = useCapturesOverTime();
  const bars = data ? barsOf(data.histogram.buckets, data.histogram.unit) : [];
  if (data && bars.length < 2) return null;
  return (
    <Card title={t("home.overTime")} className="min-h-36">
      <TimeBars bars={bars} label={t("home.overTime")} onSpan={(from, to) => void navigate({ to: "/search", search: { from, to, view: "snapshots" } })} />
    </Card>
  );
}

function LatestChanges() {
  const { t, date } = useWords();
  const { data } = useLatestChanges();
  return (
    <Card title={t("home.latestChanges")} actions={<Link to="/changes">{t("home.allChanges")}</Link>} className="min-h-56">
      <ul className="divide-y divide-line">
        {data?.results.map((change) => (
          <li key={`${change.toSnapshotId}-${change.changeId}`} className="py-2">
            <p className="break-words">{change.summary}</p>
            <p className="flex flex-wrap items-center gap-2 text-sm text-soft">
              <Tag>{change.changeType}</Tag>
              <span className="break-all">{change.normalizedUrlGroup}</span>
              <time dateTime={change.toCaptureTimestamp}>{date(change.toCaptureTimestamp)}</time>
            </p>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Kept() {
  const { t, date } = useWords();
  const { data } = useSources();
  return (
    <Card title={t("home.sources")} actions={<Link to="/sources">{t("home.allSources")}</Link>} className="min-h-56">
      <ul className="divide-y divide-line">
        {data?.slice(0, 8).map((source) => (
          <li key={source.sourceCode} className="flex flex-wrap items-baseline justify-between gap-x-4 py-2">
            <Link to="/search" search={{ source: source.sourceCode }} className="min-w-0 font-semibold break-words">{source.sourceName}</Link>
            <span className="text-sm text-soft">{t("search.capturesOf", { count: source.recordCount })} · {date(source.lastCapture)}</span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
