import { Link } from "@tanstack/react-router";
import { Problem } from "@/app/Problem";
import { buttonClass } from "@/design/Button";
import { Card, Figure } from "@/design/Card";
import { Notice } from "@/design/Notice";
import { count, counted } from "../charts/format";
import { Meter } from "../charts/Meter";
import { useFrontierStats } from "../executions/useExecution";
import { isAhead, runStateOf } from "../jobs/words";
import { useJob, type Job } from "../jobs/useJobs";
import { LiveSign } from "../live/LiveSign";
import { useCrawlNews } from "../overview/useOverview";
import { PageHead } from "../page/PageHead";
import { sentence } from "../page/words";
import { NoWorker } from "./NoWorker";
import { useFirstPages, useLacksWorker } from "./useStart";

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
  const doing = isOver ? "Crawled" : !run || isAhead(run) ? "About to crawl" : "Crawling";
  return (
    <div className="max-w-4xl space-y-5">
      <PageHead title={`${doing} ${job.source_name}`} actions={isOver ? undefined : <LiveSign liveness={news} />}>
        {isOver ? "" : "You can leave this page: the crawl goes on without it, and the overview shows it."}
      </PageHead>
      {run && !isAhead(run) ? <Figures run={run} isRunning={!isOver} /> : <Waiting />}
      {run && isOver && <Ended job={job} run={run} />}
      {run && <p><Link to="/control/executions/$id" params={{ id: String(run.id) }}>Everything about this run</Link></p>}
    </div>
  );
}

function Waiting() {
  const lacksWorker = useLacksWorker();
  return lacksWorker ? <NoWorker /> : <Notice title="The crawl waits for a worker.">It starts as soon as one is free, usually within seconds.</Notice>;
}

function Figures({ run, isRunning }: { run: Run; isRunning: boolean }) {
  const { data: stats } = useFrontierStats(run.id, isRunning);
  const done = stats ? stats.completed + stats.failed + stats.ruledOut : 0;
  const all = stats ? done + stats.pending : 0;
  return (
    <>
      <Card title="Progress" className="min-h-28">
        <p className="mb-1">{stats ? `${count(done)} of ${counted(all, "known address", "known addresses")}` : "\u2007"}</p>
        <Meter label="Addresses that are done, of those known" value={done} most={Math.max(1, all)} />
        {isRunning && <p className="mt-1 text-sm text-soft">The number of known addresses grows while pages lead to others.</p>}
      </Card>
      <dl className="grid grid-cols-2 gap-3 sm:grid-cols-4">
        <Figure label="Pages" value={count(run.items_crawled)} />
        <Figure label="Failed" value={count(run.items_failed)} />
        <Figure label="Queued" value={stats ? count(stats.pending) : "\u2007"} />
        <Figure label="Left out" value={stats ? count(stats.ruledOut) : "\u2007"} note="by rules and robots.txt" />
      </dl>
    </>
  );
}

function Ended({ job, run }: { job: Job; run: Run }) {
  const hasPages = run.items_crawled > 0;
  const isUnread = UNREAD.has(run.index_state ?? "");
  const { data } = useFirstPages(job.source_code, hasPages && !isUnread && run.index_state !== "index_failed");
  const first = data?.results[0]?.originalUrl;
  const page = startOf(job) ?? first;
  const again = <Link to="/control/start" search={{}} className={buttonClass()}>Add another website</Link>;
  if (!hasPages) return <Notice tone="bad" title="Nothing was captured." actions={again}>{sentence(run.sentence ?? run.error ?? "The page of the run says why")}</Notice>;
  if (run.index_state === "index_failed") return <Notice tone="bad" title="The pages are captured, but they could not be indexed." actions={again}>The page of the run says why, and indexes them again.</Notice>;
  if (isUnread || !data) return <Notice title="The crawl has ended. Its pages are being indexed…">Search shows them in a moment.</Notice>;
  const ending = runStateOf(run);
  const isWhole = ending === "completed";
  const told = isWhole ? "Crawl it again later to see what changes: give it a schedule on the page of its source." : sentence(run.sentence ?? "The crawl ended early");
  return (
    <Notice tone={isWhole && first ? "good" : "warn"} title={`${counted(run.items_crawled, "page")} of ${job.source_name} ${first ? "can be searched" : "captured"}${isWhole ? "." : `; the run is ${ending}.`}`} actions={
      <>
        {first && <Link to="/search" search={{ source: job.source_code }} className={buttonClass("main")}>Search its pages</Link>}
        {page && <Link to="/page" search={{ url: page }} className={buttonClass()}>First page through time</Link>}
        {again}
      </>
    }>{first ? told : `Search shows none of them yet. Pages that ask not to be indexed, images and error pages never appear there. ${told}`}</Notice>
  );
}

function startOf(job: Job): string | undefined {
  const seeds = (job.config as { seeds?: unknown }).seeds;
  return job.url ?? (Array.isArray(seeds) && typeof seeds[0] === "string" ? seeds[0] : undefined);
}
