import { useEffect } from "react";
import { useSearch } from "@tanstack/react-router";
import { Problem } from "@/app/Problem";
import { Figure } from "@/design/Card";
import { bytes, count, counted, share } from "../charts/format";
import { LiveSign } from "../live/LiveSign";
import { readSpan } from "../charts/span";
import { Activity } from "./Activity";
import { Alerts, Health } from "./Alerts";
import { Charts } from "./Charts";
import { Runs, WaitingHosts } from "./Runs";
import { Stores } from "./Stores";
import { useCrawlNews, useFigures, useFrontiers, useRunningJobs } from "./useOverview";
import { Workers } from "./Workers";

/** What runs now, how well, and what needs a person. */
export function OverviewPage() {
  const { hours = 1 } = readSpan({ ...useSearch({ strict: false }) });
  const news = useCrawlNews();
  const jobs = useRunningJobs(news);
  const runs = useFrontiers((jobs.data?.jobs ?? []).flatMap((job) => (job.latest_execution ? [{ id: job.latest_execution.id, source: job.source_name, job }] : [])));
  const { data, error, refetch } = useFigures();
  useEffect(() => { document.title = "Overview · Holdfast"; }, []);
  return (
    <div className="space-y-5">
      <header className="flex flex-wrap items-center justify-between gap-3">
        <h1 className="text-2xl">Overview</h1>
        <LiveSign liveness={news} />
      </header>
      {error && !data ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      <Health />
      <Alerts />
      <dl className="grid grid-cols-2 gap-3 sm:grid-cols-3 xl:grid-cols-6">
        <Figure label="Pages a second" value={data ? data.pagesPerSecond.toFixed(data.pagesPerSecond < 10 ? 1 : 0) : "\u2007"} note="last whole minute" />
        <Figure label="Success" value={data ? (data.successRate === null ? "–" : share(data.successRate)) : "\u2007"} note={data?.successRate === null ? "nothing was asked" : "last five minutes"} />
        <Figure label="Queued" value={data ? count(data.queue) : "\u2007"} note="addresses of all runs" />
        <Figure label="Pages in all" value={data ? count(data.pages) : "\u2007"} note="since the beginning" />
        <Figure label="Kept" value={data ? bytes(data.warcBytes) : "\u2007"} note="in WARC files" />
        <Figure label="Workers" value={data ? count(data.workers) : "\u2007"} note={data ? `${counted(data.domainsLeased, "host")} asked, ${count(data.domainsWaiting)} waiting` : "\u2007"} />
      </dl>
      <Runs runs={runs} isLoading={jobs.isPending} isEmptyArchive={data?.pages === 0} />
      <Charts hours={hours} />
      <Activity hours={hours} />
      <div className="grid gap-5 xl:grid-cols-2"><Workers /><WaitingHosts runs={runs} /></div>
      <Stores />
    </div>
  );
}
