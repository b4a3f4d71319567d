import { Link, useNavigate } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useEffect, useState } from "react";
import { Operate } from "@/app/Operate";
import { Problem } from "@/app/Problem";
import { jobsRoute } from "@/app/crawlRoutes";
import { Button, buttonClass } from "@/design/Button";
import { DataTable } from "@/design/DataTable";
import { SelectField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { count } from "../charts/format";
import { useExecution } from "../executions/useExecution";
import { LiveSign } from "../live/LiveSign";
import { Moment } from "../live/Moment";
import { Pager } from "../live/Pager";
import { SearchField } from "../live/SearchField";
import { useCrawlNews } from "../overview/useOverview";
import { useSourceChoices } from "../sources/useSources";
import { readAskedJobs, SORTS, STATES, type AskedJobs } from "./asked";
import { CrawlDialog } from "./CrawlDialog";
import { PAGE_SIZE, useJobs, useStatusCounts, type Job } from "./useJobs";
import { waitTitle } from "./Waits";
import { runStateOf, stateWord, toneOf } from "./words";
import { t } from "@/language/control/jobs";
import { withParts } from "@/language/room";

/** Every job, with how it does and when it runs next. */
export function JobsPage() {
  const asked = readAskedJobs({ ...jobsRoute.useSearch() });
  const navigate = useNavigate();
  const news = useCrawlNews();
  const { data, error, refetch, isFetching } = useJobs(asked, news);
  const counts = useStatusCounts(news);
  const sources = useSourceChoices();
  const [isOpen, open] = useState(false);
  useEffect(() => { document.title = `${t("jobs")} · Holdfast`; }, []);
  const go = (change: Partial<AskedJobs>) => void navigate({ to: "/control/jobs", search: readAskedJobs({ ...asked, page: undefined, ...change }) });
  const isFiltered = Boolean(asked.q || asked.status || asked.source);
  return (
    <>
      <header className="mb-4 flex flex-wrap items-center justify-between gap-3">
        <h1 className="text-2xl">{t("jobs")}</h1>
        <div className="flex flex-wrap items-center gap-3">
          <LiveSign liveness={news} />
          <Operate><Button kind="main" onClick={() => open(true)}><Plus aria-hidden className="size-4" />{t("crawlOnce")}</Button></Operate>
        </div>
      </header>
      <form role="search" className="mb-5 grid items-end gap-3 sm:grid-cols-2 lg:grid-cols-4" onSubmit={(event) => event.preventDefault()}>
        <SearchField label={t("search")} placeholder={t("searchHint")} asked={asked.q ?? ""} onAsk={(q) => go({ q })} />
        <SelectField label={t("state")} value={asked.status ?? ""} onChange={(event) => go({ status: (event.target.value || undefined) as AskedJobs["status"] })}>
          <option value="">{t("all")}</option>
          {STATES.map((state) => <option key={state} value={state}>{t(`state.${state}`)}{counts.data ? ` (${count(counts.data[state] ?? 0)})` : ""}</option>)}
        </SelectField>
        <SelectField label={t("source")} value={asked.source ?? ""} onChange={(event) => go({ source: Number(event.target.value) || undefined })}>
          <option value="">{t("all")}</option>
          {sources?.map((source) => <option key={source.id} value={source.id}>{source.name}</option>)}
        </SelectField>
        <SelectField label={t("order")} value={asked.sort ?? "created_at"} onChange={(event) => go({ sort: event.target.value as AskedJobs["sort"] })}>
          {SORTS.map((sort) => <option key={sort} value={sort}>{t(`sort.${sort}`)}</option>)}
        </SelectField>
      </form>
      {error && !data ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      <RunByNumber asked={asked.q} />
      <p role="status" className="mb-2 min-h-6 text-sm text-soft">{data ? t("count", { count: data.total }) : ""}</p>
      <div aria-busy={isFetching} className="min-h-64">
        {data && <DataTable caption={t("jobs")} rows={data.jobs} keyOf={(job) => job.id} columns={columns()} empty={
          isFiltered ? <Notice title={t("noMatch")}>{t("noMatchHow")}</Notice>
            : <Notice title={t("none")}>{withParts(t("noneHow"), { source: <Link to="/control/sources/new">{t("sourceWord")}</Link> })}</Notice>
        } />}
      </div>
      {data && <Pager page={asked.page ?? 1} size={PAGE_SIZE} total={data.total} label={t("pages")} onPage={(page) => go({ page })} />}
      <CrawlDialog isOpen={isOpen} onClose={() => open(false)} sources={sources ?? []} />
    </>
  );
}

/** A run is found by its number, too: `#12` or `12`. */
function RunByNumber({ asked }: { asked: string | undefined }) {
  const number = /^#?(\d{1,10})$/.exec(asked?.trim() ?? "")?.[1];
  const { data: run } = useExecution(Number(number ?? 0), "live");
  if (!number || run?.id !== Number(number)) return null;
  return <p className="mb-2"><Link to="/control/executions/$id" params={{ id: number }} className={buttonClass()}>{t("openRun", { number })}</Link></p>;
}

const columns = () => [
  { head: t("job"), cell: (job: Job) => <><Link to="/control/jobs/$id" params={{ id: String(job.id) }} className="inline-block min-h-6 font-semibold wrap-anywhere">{job.name ?? job.source_name}</Link><span className="block text-sm break-all text-soft">{job.type === "crawl" ? "" : `${job.type} · `}{job.url ?? job.source_code}</span></> },
  { head: t("state"), cell: (job: Job) => <><Tag tone={toneOf(job.status)}>{stateWord(job.status)}</Tag>{job.error_message && job.status === "failed" && <span className="mt-1 block max-w-80 text-sm break-words text-soft">{job.error_message}</span>}{job.paused_by === "source" && <span className="mt-1 block text-sm text-soft">{t("disabled")}</span>}</> },
  { head: t("nextRun"), cell: (job: Job) => <Moment at={job.next_run_at} relative /> },
  { head: t("lastRun"), cell: (job: Job) => <Last job={job} /> },
];

function Last({ job }: { job: Job }) {
  const run = job.latest_execution;
  if (!run) return <>{t("never")}</>;
  return (
    <>
      <Link to="/control/executions/$id" params={{ id: String(run.id) }} className="inline-block min-h-6">#{run.id}</Link> <Tag tone={toneOf(runStateOf(run))}>{stateWord(runStateOf(run))}</Tag>
      {waitTitle(run) && <span className="block text-sm">{waitTitle(run)}</span>}
      <span className="block text-sm text-soft">{run.items_failed ? t("failedToo", { pages: t("captured", { count: run.items_crawled }), failed: run.items_failed }) : t("captured", { count: run.items_crawled })} · <Moment at={run.completed_at ?? run.started_at ?? run.created_at} relative /></span>
    </>
  );
}
