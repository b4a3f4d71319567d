import { Link } from "@tanstack/react-router";
import { useState, type ReactNode } from "react";
import { Problem } from "@/app/Problem";
import { Card, Placeholder } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { SelectField } from "@/design/Field";
import { Tag } from "@/design/Tag";
import { digits } from "@/page/calendar";
import { BarList } from "../charts/BarList";
import { ChartOrTable } from "../charts/ChartOrTable";
import { perSecond } from "../charts/columns";
import { bytes, count, counted, share } from "../charts/format";
import { TimeChart } from "../charts/TimeChart";
import { outcomeTone } from "../executions/outcomes";
import { Moment } from "../live/Moment";
import { statusName, statusTone } from "./statusNames";
import { useActivity, useSeries, wholeSteps, type Activity as Figures, type BusyBy } from "./useOverview";

/** The API has more; a phone scrolls far enough. */
const PAGES = 10;
const BY: Record<BusyBy, string> = { captures: "captures", bytes: "bytes", errors: "errors" };

/** What crawls did in a span: status codes, the busiest domains, the newest pages, and the hosts that were given up. */
export function Activity({ hours }: { hours: number }) {
  const [by, sort] = useState<BusyBy>("captures");
  const { data, error, refetch } = useActivity(hours, by);
  if (error && !data) return <Problem problem={error} onAgain={() => void refetch()} />;
  return (
    <>
      <div className="grid gap-5 xl:grid-cols-2">
        <StatusCodes hours={hours} data={data} />
        <Domains data={data} by={by} actions={
          <SelectField label="Sort domains by" hideLabel value={by} onChange={(event) => sort(event.target.value as BusyBy)}>
            {Object.entries(BY).map(([value, said]) => <option key={value} value={value}>by {said}</option>)}
          </SelectField>
        } />
      </div>
      <GivenUp data={data} />
      <RecentPages data={data} />
    </>
  );
}

type Shown = { data: Figures | undefined };

/** Where figures come from, in a sentence; what to do while there are none. */
function Counted({ data, children }: { data: Figures | undefined; children: ReactNode }) {
  if (!data) return <Placeholder lines={6} />;
  if (data.attempts === 0) return <p className="text-soft">No crawl requested anything in this span. Choose a longer one above, or <Link to="/control/jobs">start a crawl</Link>; its responses will appear here.</p>;
  return (
    <>
      {children}
      <p className="mt-3 text-sm text-soft">{data.isCut ? <>The newest {counted(data.attempts, "request")} of this span, since <Moment at={data.countedFrom} /></> : <>{counted(data.attempts, "request")} in this span</>}</p>
    </>
  );
}

function StatusCodes({ hours, data }: Shown & { hours: number }) {
  const series = useSeries(hours).data;
  const all = data?.attempts ?? 0;
  const { times, step } = wholeSteps(series);
  const classes = Object.entries(series?.statusClasses ?? {}).filter(([name, values]) => name !== "other" || values.some(Boolean));
  const tones = { "2xx": "good", "3xx": "accent", "4xx": "warn", "5xx": "bad", other: "ink" } as const;
  return (
    <ChartOrTable title="Status codes" className="min-h-64 xl:min-h-[30rem]" chart={
      <Counted data={data}>
        <BarList label="Requests by status code" format={count} bars={(data?.statuses ?? []).slice(0, 8).map((one) => ({ key: String(one.status), name: statusName(one.status), value: one.attempts, tone: statusTone(one.status) }))} />
        <div className="mt-4">{series && <TimeChart title="Responses a second" caption="By the first digit of their status." times={times} format={(value) => value.toFixed(value < 10 ? 1 : 0)} lines={classes.map(([name, values]) => ({ label: name, values: perSecond(values, step), tone: tones[name as keyof typeof tones] ?? "ink" }))} />}</div>
      </Counted>
    } table={
      <Counted data={data}>
        <DataTable caption="Requests by status code" rows={data?.statuses ?? []} keyOf={(one) => String(one.status)} empty={null} columns={[
          { head: "Status", cell: (one) => statusName(one.status) },
          { head: "Requests", isNumber: true, cell: (one) => count(one.attempts) },
          { head: "Share", isNumber: true, cell: (one) => share(one.attempts / all) },
        ]} />
        <h3 className="mt-4 mb-1 font-semibold">Responses of the whole span</h3>
        <DataTable caption="Responses of the whole span by class" rows={Object.entries(data?.statusClasses ?? {})} keyOf={([name]) => name} empty={null} columns={[
          { head: "Class", cell: ([name]) => name },
          { head: "Responses", isNumber: true, cell: ([, amount]) => count(amount) },
        ]} />
      </Counted>
    } />
  );
}

function Domains({ data, by, actions }: Shown & { by: BusyBy; actions: ReactNode }) {
  const format = by === "bytes" ? bytes : count;
  const rows = data?.domains ?? [];
  const none = <p className="text-soft">No domain has {BY[by]} in this span.</p>;
  return (
    <ChartOrTable title="Top domains" className="min-h-64 xl:min-h-[30rem]" actions={actions} chart={
      <Counted data={data}>{rows.length === 0 ? none : <BarList label={`Domains by ${BY[by]}`} format={format} bars={rows.slice(0, 12).map((one) => ({ key: one.domain, name: <DomainLink domain={one.domain} />, value: one[by], tone: by === "errors" ? "bad" : "accent" }))} />}</Counted>
    } table={
      <Counted data={data}>
        <DataTable caption={`Domains by ${BY[by]}`} rows={rows} keyOf={(one) => one.domain} empty={none} columns={[
          { head: "Domain", cell: (one) => <DomainLink domain={one.domain} /> },
          { head: "Captures", isNumber: true, cell: (one) => count(one.captures) },
          { head: "Bytes", isNumber: true, cell: (one) => bytes(one.bytes) },
          { head: "Errors", isNumber: true, cell: (one) => count(one.errors) },
        ]} />
      </Counted>
    } />
  );
}

function DomainLink({ domain }: { domain: string }) {
  return <Link to="/control/domains/$domain" params={{ domain }} className="inline-block min-h-6 break-all">{domain}</Link>;
}

function GivenUp({ data }: Shown) {
  return (
    <Card title="Hosts given up" className="min-h-28">
      <DataTable caption="Hosts that are not requested until they answer again" rows={data?.unreachableHosts ?? []} keyOf={(host) => host.domain}
        empty={data ? <p className="text-soft">None: every host that was requested answers. A host that fails again and again will appear here, with the reason and the next step.</p> : <Placeholder lines={1} />} columns={[
          { head: "Host", cell: (host) => <DomainLink domain={host.domain} /> },
          { head: "Reason", cell: (host) => <span className="break-words">{host.reason}{host.failures > 0 && <span className="text-soft"> ({counted(host.failures, "failure")} in a row)</span>}</span> },
          { head: "Since", cell: (host) => <Moment at={host.since} relative /> },
          { head: "Next try", cell: (host) => <Moment at={host.nextTryAt} relative /> },
          { head: "What to do", cell: (host) => <>{host.nextStep} <Link to="/control/domains/$domain" params={{ domain: host.domain }} aria-label={`Open host ${host.domain}`} className="inline-block min-h-6">Open host</Link></> },
        ]} />
    </Card>
  );
}

function RecentPages({ data }: Shown) {
  return (
    <Card title="Recent pages" className="min-h-96">
      <DataTable caption="Pages that were requested last" rows={(data?.pages ?? []).slice(0, PAGES)} keyOf={(page) => `${page.executionId} ${page.completedAt} ${page.url}`}
        empty={data ? <p className="text-soft">No page was requested in this span. Pages appear here while a crawl runs.</p> : <Placeholder lines={10} />} columns={[
          { head: "Page", cell: (page) => <PageCell page={page} /> },
          { head: "Outcome", cell: (page) => <OutcomeCell page={page} /> },
          { head: "When", cell: (page) => <Moment at={page.completedAt} relative /> },
          { head: "Run", cell: (page) => <Link to="/control/executions/$id" params={{ id: String(page.executionId) }} className="inline-block min-h-6">{page.sourceCode} #{page.executionId}</Link> },
          { head: <span className="sr-only">Explain</span>, cell: (page) => <Link to="/control/explain" search={{ url: page.url }} aria-label={`Explain ${page.url}`} className="inline-block min-h-6">Explain</Link> },
        ]} />
    </Card>
  );
}

type Page = Figures["pages"][number];

function PageCell({ page }: { page: Page }) {
  const title = page.title ?? page.url;
  return (
    <span className="block min-w-0">
      {page.capturedAt ? <Link to="/view/$timestamp" params={{ timestamp: digits(page.capturedAt) }} search={{ url: page.url }} className="inline-block min-h-6 font-semibold break-words">{title}</Link> : <span className="font-semibold break-words">{title}</span>}
      {page.title && <span className="block text-sm break-all text-soft">{page.url}</span>}
    </span>
  );
}

function OutcomeCell({ page }: { page: Page }) {
  return <><Tag tone={outcomeTone(page.outcome)}>{page.word}</Tag>{page.status !== null && <span className="block text-sm break-words text-soft">{statusName(page.status)}</span>}</>;
}
