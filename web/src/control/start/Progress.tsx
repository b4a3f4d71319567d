import { Link } from "@tanstack/react-router";
import { mayPass } from "@/api/problem";
import { Problem } from "@/app/Problem";
import { buttonClass } from "@/design/Button";
import { Card, Figure } from "@/design/Card";
import { Notice } from "@/design/Notice";
import { count } from "../charts/format";
import { Meter } from "../charts/Meter";
import { useFrontierStats } from "../executions/useExecution";
import { isAhead, runStateOf, startPageOf } from "../jobs/words";
import { useJob, type Job } from "../jobs/useJobs";
import { WaitNotice } from "../jobs/Waits";
import { LiveSign } from "../live/LiveSign";
import { useCrawlNews } from "../overview/useOverview";
import { PageHead } from "../page/PageHead";
import { sentence } from "../page/words";
import { NoWorker } from "./NoWorker";
import { useFirstPages, useLacksWorker } from "./useStart";
import { t } from "@/language/control/start";
import { t as waits } from "@/language/control/waits";
import { withParts } from "@/language/room";

type Run = NonNullable<Job["latest_execution"]>;
/** While the index reads what was crawled, search may not have its own index yet. */
const UNREAD = new Set(["pending", "indexing"]);
const ENDED = new Set(["completed", "failed", "cancelled", "stopped"]);

/** A crawl that was just started, live; at its end the way to its pages. */
export function Progress({ job: id }: { job: number }) {
  const news = useCrawlNews();
  const { data: job, error, refetch } = useJob(id, news);
  const run = job?.latest_execution ?? null;
  const isOver = run !== null && ENDED.has(run.status);
  if (error && !job) return <Problem problem={error} onAgain={() => void refetch()} />;
  if (!job) return <div className="min-h-[60vh]" aria-busy="true" />;
  const doing = isOver ? "crawledName" : !run || isAhead(run) ? "aboutTo" : "crawling";
  return (
    <div className="max-w-4xl space-y-5">
      <PageHead title={t(doing, { name: job.source_name })} actions={isOver ? undefined : <LiveSign liveness={news} />}>
        {isOver ? "" : t("leave")}
      </PageHead>
      {run === null ? <NotQueued /> : isAhead(run) ? <WaitNotice run={run} job={job} /> : <Figures run={run} isRunning={!isOver} />}
      {run && isOver && <Ended job={job} run={run} />}
      {run && <p><Link to="/control/executions/$id" params={{ id: String(run.id) }}>{t("everything")}</Link></p>}
    </div>
  );
}

/** A job whose run no scheduler has queued yet: there is none without a worker. */
function NotQueued() {
  return useLacksWorker() ? <NoWorker /> : <Notice title={waits("title.turn")}>{waits("turn")}</Notice>;
}

function Figures({ run, isRunning }: { run: Run; isRunning: boolean }) {
  const { data: stats } = useFrontierStats(run.id, isRunning);
  const done = stats ? stats.completed + stats.failed + stats.ruledOut : 0;
  const all = stats ? done + stats.pending : 0;
  return (
    <>
      <Card title={t("progress")} className="min-h-28">
        <p className="mb-1">{stats ? t("ofKnown", { done, count: all }) : "\u2007"}</p>
        <Meter label={t("meter")} value={done} most={Math.max(1, all)} />
        {isRunning && <p className="mt-1 text-sm text-soft">{t("grows")}</p>}
      </Card>
      <dl className="grid grid-cols-2 gap-3 sm:grid-cols-4">
        <Figure label={t("pages")} value={count(run.items_crawled)} />
        <Figure label={t("failed")} value={count(run.items_failed)} />
        <Figure label={t("queued")} value={stats ? count(stats.pending) : "\u2007"} />
        <Figure label={t("leftOut")} value={stats ? count(stats.ruledOut) : "\u2007"} note={t("byRules")} />
      </dl>
    </>
  );
}

function Ended({ job, run }: { job: Job; run: Run }) {
  const hasPages = run.items_crawled > 0;
  const isUnread = UNREAD.has(run.index_state ?? "");
  const { data, error } = useFirstPages(job.source_code, hasPages && !isUnread && run.index_state !== "index_failed");
  const first = data?.results[0]?.originalUrl;
  const page = startPageOf(job) ?? first;
  const again = <Link to="/control/start" search={{}} className={buttonClass()}>{t("another")}</Link>;
  if (!hasPages) return <Notice tone="bad" title={t("nothing")} actions={again}>{sentence(run.sentence ?? run.error ?? t("runSays"))}</Notice>;
  if (run.index_state === "index_failed") return <Notice tone="bad" title={t("notIndexed")} actions={again}>{t("notIndexedHow")}</Notice>;
  if (error && !data && !mayPass(error)) return <Problem problem={error} />;
  if (isUnread || !data) return <><Notice title={t("indexing")}>{t("indexingHow")}</Notice><NoWorker /></>;
  const ending = runStateOf(run);
  const isWhole = ending === "completed";
  const told = isWhole ? withParts(t("again"), { page: <Link to="/control/sources/$id" params={{ id: String(job.source_id) }} hash="schedule">{t("sourcePage")}</Link> }) : sentence(run.sentence ?? t("early"));
  return (
    <Notice tone={isWhole && first ? "good" : "warn"} title={t(`${first ? "canSearch" : "captured"}${isWhole ? "" : "Early"}`, { count: run.items_crawled, name: job.source_name, ending })} actions={
      <>
        {first && <Link to="/search" search={{ source: job.source_code }} className={buttonClass("main")}>{t("search")}</Link>}
        {page && <Link to="/page" search={{ url: page }} className={buttonClass()}>{t("time1")}</Link>}
        {again}
      </>
    }>{first ? told : withParts(t("showsNone"), { more: told })}</Notice>
  );
}
