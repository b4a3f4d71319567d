import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import { Problem } from "@/app/Problem";
import { ChangeList } from "@/changes/ChangeList";
import { Card, Figure, Placeholder } from "@/design/Card";
import { useWords } from "@/language/LanguageContext";
import { SearchBox } from "@/search/SearchBox";
import { barsOf } from "@/search/spans";
import { TimeBars } from "@/search/TimeBars";
import { useCapturesOverTime, useLatestChanges, useSources, useStats } from "@/api/useArchive";
import { EmptyArchive } from "./EmptyArchive";

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
  if (data && data.snapshotsTotal === 0) return <EmptyArchive />;
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
  const { data, error } = useCapturesOverTime();
  const bars = data ? barsOf(data.histogram.buckets, data.histogram.unit) : [];
  // The list of changes and of sources say what is wrong; a picture less is no harm.
  if (error || (data && bars.length < 2)) return null;
  return (
    <Card title={t("home.overTime")} className="min-h-36">
      {data ? <TimeBars bars={bars} label={t("home.overTime")} onSpan={(from, to) => void navigate({ to: "/search", search: { from, to, view: "snapshots" } })} /> : <Placeholder lines={2} />}
    </Card>
  );
}

function LatestChanges() {
  const { t } = useWords();
  const { data, error, refetch } = useLatestChanges();
  return (
    <Card title={t("home.latestChanges")} actions={<Link to="/changes">{t("home.allChanges")}</Link>} className="min-h-56">
      {error && !data ? <Problem problem={error} onAgain={() => void refetch()} /> : !data ? <Placeholder lines={12} /> : data.results.length === 0 ? <p className="text-soft">{t("changes.noneHow")}</p> : <ChangeList changes={data.results} isShort />}
    </Card>
  );
}

/** The sources, the one with the most captures first, each with its share as a bar. */
function Kept() {
  const { t, date } = useWords();
  const { data, error, refetch } = useSources();
  const most = Math.max(1, ...(data ?? []).map((source) => source.recordCount));
  const shown = [...(data ?? [])].sort((one, other) => other.recordCount - one.recordCount).slice(0, 6);
  return (
    <Card title={t("sources.title")} actions={<Link to="/sources">{t("home.allSources")}</Link>} className="min-h-56">
      {error && !data ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      {!error && !data ? <Placeholder lines={6} /> : null}
      {data?.length === 0 && <p className="text-soft">{t("sources.none")}</p>}
      <ul className="divide-y divide-line">
        {shown.map((source) => (
          <li key={source.sourceCode} className="py-2.5">
            <div className="flex flex-wrap items-baseline justify-between gap-x-4">
              <Link to="/sources/$code" params={{ code: source.sourceCode }} className="min-w-0 font-semibold break-words">{source.sourceName}</Link>
              <span className="text-sm text-soft">{t("search.capturesOf", { count: source.recordCount })} · {date(source.lastCapture)}</span>
            </div>
            <svg aria-hidden viewBox="0 0 100 4" preserveAspectRatio="none" className="mt-1.5 h-1.5 w-full"><rect width="100" height="4" className="fill-sunk" /><rect width={(source.recordCount / most) * 100} height="4" className="fill-accent" /></svg>
          </li>
        ))}
      </ul>
    </Card>
  );
}
