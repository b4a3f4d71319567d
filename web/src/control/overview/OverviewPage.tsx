import { useEffect } from "react";
import { useSearch } from "@tanstack/react-router";
import { Problem } from "@/app/Problem";
import { Figure, Placeholder } from "@/design/Card";
import { bytes, count, rate, share } from "../charts/format";
import { LiveSign } from "../live/LiveSign";
import { readSpan } from "../charts/span";
import { Activity } from "./Activity";
import { Alerts, Health } from "./Alerts";
import { Charts } from "./Charts";
import { Runs, WaitingHosts, WaitingRuns } from "./Runs";
import { Stores } from "./Stores";
import { useAlerts, useCrawlNews, useFigures, useFrontiers, useHealth, useRunningJobs, useWaitingJobs } from "./useOverview";
import { Workers } from "./Workers";
import { t } from "@/language/control/overview";

/** What runs now, how well, and what needs a person. */
export function OverviewPage() {
  const { hours = 1 } = readSpan({ ...useSearch({ strict: false }) });
  const news = useCrawlNews();
  const jobs = useRunningJobs(news);
  const runs = useFrontiers((jobs.data?.jobs ?? []).flatMap((job) => (job.latest_execution ? [{ id: job.latest_execution.id, source: job.source_name, job }] : [])));
  const { data, error, refetch } = useFigures();
  const waiting = useWaitingJobs(news);
  // What may stand above the figures comes first: notices that came later would push them down.
  const isLoading = [waiting, useHealth(), useAlerts()].some((one) => one.isPending);
  useEffect(() => { document.title = `${t("title")} · Holdfast`; }, []);
  return (
    <div className="space-y-5">
      <header className="flex flex-wrap items-center justify-between gap-3">
        <h1 className="text-2xl">{t("title")}</h1>
        <LiveSign liveness={news} />
      </header>
      {error && !data ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      {isLoading ? <div className="min-h-screen"><Placeholder lines={8} /></div> : <>
      <Health />
      <Alerts />
      <dl className="grid grid-cols-2 gap-3 sm:grid-cols-3 xl:grid-cols-6">
        <Figure label={t("pagesSecond")} value={data ? rate(data.pagesPerSecond) : "\u2007"} note={t("lastMinute")} />
        <Figure label={t("success")} value={data ? (data.successRate === null ? "–" : share(data.successRate)) : "\u2007"} note={data?.successRate === null ? t("noRequests") : t("fiveMinutes")} />
        <Figure label={t("queued")} value={data ? count(data.queue) : "\u2007"} note={t("queuedNote")} />
        <Figure label={t("pagesAll")} value={data ? count(data.pages) : "\u2007"} note={t("sinceStart")} />
        <Figure label={t("kept")} value={data ? bytes(data.warcBytes) : "\u2007"} note={t("inWarc")} />
        <Figure label={t("workers")} value={data ? count(data.workers) : "\u2007"} note={data ? t("hostsNow", { active: data.domainsLeased, waiting: data.domainsWaiting }) : "\u2007"} />
      </dl>
      <WaitingRuns jobs={waiting.data ?? []} />
      <Runs runs={runs} isLoading={jobs.isPending} isEmptyArchive={data?.pages === 0} />
      <Charts hours={hours} />
      <Activity hours={hours} />
      <div className="grid gap-5 xl:grid-cols-2"><Workers /><WaitingHosts runs={runs} /></div>
      <Stores />
      </>}
    </div>
  );
}
