import { Link, useNavigate } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useEffect, useState } from "react";
import { Problem } from "@/app/Problem";
import { jobsRoute } from "@/app/crawlRoutes";
import { Button } from "@/design/Button";
import { DataTable } from "@/design/DataTable";
import { SelectField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { count, counted } from "../charts/format";
import { LiveSign } from "../live/LiveSign";
import { Moment } from "../live/Moment";
import { Pager } from "../live/Pager";
import { SearchField } from "../live/SearchField";
import { useCrawlNews } from "../overview/useOverview";
import { useSourceChoices } from "../sources/useSources";
import { readAskedJobs, SORTS, STATES, type AskedJobs } from "./asked";
import { CrawlDialog } from "./CrawlDialog";
import { PAGE_SIZE, useJobs, useStatusCounts, type Job } from "./useJobs";
import { runStateOf, toneOf } from "./words";

/** Every job, with how it does and when it runs next. */
export function JobsPage() {
  const asked = readAskedJobs({ ...jobsRoute.useSearch() });
  const navigate = useNavigate();
  const news = useCrawlNews();
  const { data, error, refetch, isFetching } = useJobs(asked, news);
  const counts = useStatusCounts(news);
  const sources = useSourceChoices();
  const [isOpen, open] = useState(false);
  useEffect(() => { document.title = "Jobs · Holdfast"; }, []);
  const go = (change: Partial<AskedJobs>) => void navigate({ to: "/control/jobs", search: readAskedJobs({ ...asked, page: undefined, ...change }) });
  const isFiltered = Boolean(asked.q || asked.status || asked.source);
  return (
    <>
      <header className="mb-4 flex flex-wrap items-center justify-between gap-3">
        <h1 className="text-2xl">Jobs</h1>
        <div className="flex flex-wrap items-center gap-3">
          <LiveSign liveness={news} />
          <Button kind="main" onClick={() => open(true)}><Plus aria-hidden className="size-4" />Crawl once</Button>
        </div>
      </header>
      <form role="search" className="mb-5 grid items-end gap-3 sm:grid-cols-2 lg:grid-cols-4" onSubmit={(event) => event.preventDefault()}>
        <SearchField label="Search" placeholder="name, code or address" asked={asked.q ?? ""} onAsk={(q) => go({ q })} />
        <SelectField label="State" value={asked.status ?? ""} onChange={(event) => go({ status: (event.target.value || undefined) as AskedJobs["status"] })}>
          <option value="">all</option>
          {STATES.map((state) => <option key={state} value={state}>{state}{counts.data ? ` (${count(counts.data[state] ?? 0)})` : ""}</option>)}
        </SelectField>
        <SelectField label="Source" value={asked.source ?? ""} onChange={(event) => go({ source: Number(event.target.value) || undefined })}>
          <option value="">all</option>
          {sources?.map((source) => <option key={source.id} value={source.id}>{source.name}</option>)}
        </SelectField>
        <SelectField label="Order" value={asked.sort ?? "created_at"} onChange={(event) => go({ sort: event.target.value as AskedJobs["sort"] })}>
          {Object.entries(SORTS).map(([sort, said]) => <option key={sort} value={sort}>{said}</option>)}
        </SelectField>
      </form>
      {error && !data ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      <p role="status" className="mb-2 min-h-6 text-sm text-soft">{data ? counted(data.total, "job") : ""}</p>
      <div aria-busy={isFetching} className="min-h-64">
        {data && <DataTable caption="Jobs" rows={data.jobs} keyOf={(job) => job.id} columns={COLUMNS} empty={
          isFiltered ? <Notice title="No job is like that.">Take a filter away, or search for another name.</Notice>
            : <Notice title="There are no jobs yet.">A job crawls a source again and again. Make a <Link to="/control/sources/new">source</Link> with a schedule, or crawl something once.</Notice>
        } />}
      </div>
      {data && <Pager page={asked.page ?? 1} size={PAGE_SIZE} total={data.total} label="Pages of jobs" onPage={(page) => go({ page })} />}
      <CrawlDialog isOpen={isOpen} onClose={() => open(false)} sources={sources ?? []} />
    </>
  );
}

const COLUMNS = [
  { head: "Job", cell: (job: Job) => <><Link to="/control/jobs/$id" params={{ id: String(job.id) }} className="inline-block min-h-6 font-semibold break-words">{job.name ?? job.source_name}</Link><span className="block text-sm break-all text-soft">{job.type === "crawl" ? "" : `${job.type} · `}{job.url ?? job.source_code}</span></> },
  { head: "State", cell: (job: Job) => <><Tag tone={toneOf(job.status)}>{job.status}</Tag>{job.error_message && job.status === "failed" && <span className="mt-1 block max-w-80 text-sm break-words text-soft">{job.error_message}</span>}{job.paused_by === "source" && <span className="mt-1 block text-sm text-soft">its source is disabled</span>}</> },
  { head: "Next run", cell: (job: Job) => <Moment at={job.next_run_at} relative /> },
  { head: "Last run", cell: (job: Job) => <Last job={job} /> },
];

function Last({ job }: { job: Job }) {
  const run = job.latest_execution;
  if (!run) return <>never</>;
  return (
    <>
      <Link to="/control/executions/$id" params={{ id: String(run.id) }} className="inline-block min-h-6">#{run.id}</Link> <Tag tone={toneOf(runStateOf(run))}>{runStateOf(run)}</Tag>
      <span className="block text-sm text-soft">{counted(run.items_crawled, "page")}{run.items_failed ? `, ${count(run.items_failed)} failed` : ""} · <Moment at={run.completed_at ?? run.started_at ?? run.created_at} relative /></span>
    </>
  );
}
