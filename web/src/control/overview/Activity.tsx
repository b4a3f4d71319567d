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
import { bytes, count, rate, share } from "../charts/format";
import { TimeChart } from "../charts/TimeChart";
import { outcomeTone, outcomeWord } from "../executions/outcomes";
import { Moment } from "../live/Moment";
import { statusName, statusTone } from "./statusNames";
import { useActivity, useSeries, wholeSteps, type Activity as Figures, type BusyBy } from "./useOverview";
import { t } from "@/language/control/overview";
import { withParts } from "@/language/room";

/** The API has more; a phone scrolls far enough. */
const PAGES = 10;
const BY: readonly BusyBy[] = ["captures", "bytes", "errors"];

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
          <SelectField label={t("sortBy")} hideLabel value={by} onChange={(event) => sort(event.target.value as BusyBy)}>
            {BY.map((value) => <option key={value} value={value}>{t(`by.${value}`)}</option>)}
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
  if (data.attempts === 0) return <p className="text-soft">{withParts(t("noActivity"), { start: <Link to="/control/jobs">{t("startCrawl")}</Link> })}</p>;
  return (
    <>
      {children}
      <p className="mt-3 text-sm text-soft">{data.isCut ? withParts(t("newest", { count: data.attempts }), { time: <Moment at={data.countedFrom} /> }) : t("requestsIn", { count: data.attempts })}</p>
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
    <ChartOrTable title={t("statusCodes")} className="min-h-64 xl:min-h-[30rem]" chart={
      <Counted data={data}>
        <BarList label={t("byStatus")} format={count} bars={(data?.statuses ?? []).slice(0, 8).map((one) => ({ key: String(one.status), name: statusName(one.status), value: one.attempts, tone: statusTone(one.status) }))} />
        <div className="mt-4">{series && <TimeChart title={t("responsesSecond")} caption={t("byDigit")} times={times} format={rate} lines={classes.map(([name, values]) => ({ label: name, values: perSecond(values, step), tone: tones[name as keyof typeof tones] ?? "ink" }))} />}</div>
      </Counted>
    } table={
      <Counted data={data}>
        <DataTable caption={t("byStatus")} rows={data?.statuses ?? []} keyOf={(one) => String(one.status)} empty={null} columns={[
          { head: t("status"), cell: (one) => statusName(one.status) },
          { head: t("requests"), isNumber: true, cell: (one) => count(one.attempts) },
          { head: t("share"), isNumber: true, cell: (one) => share(one.attempts / all) },
        ]} />
        <h3 className="mt-4 mb-1 font-semibold">{t("wholeSpan")}</h3>
        <DataTable caption={t("wholeSpanCaption")} rows={Object.entries(data?.statusClasses ?? {})} keyOf={([name]) => name} empty={null} columns={[
          { head: t("class"), cell: ([name]) => name },
          { head: t("responses"), isNumber: true, cell: ([, amount]) => count(amount) },
        ]} />
      </Counted>
    } />
  );
}

function Domains({ data, by, actions }: Shown & { by: BusyBy; actions: ReactNode }) {
  const format = by === "bytes" ? bytes : count;
  const rows = data?.domains ?? [];
  const none = <p className="text-soft">{t("noDomain", { by: t(`by.${by}`) })}</p>;
  return (
    <ChartOrTable title={t("topDomains")} className="min-h-64 xl:min-h-[30rem]" actions={actions} chart={
      <Counted data={data}>{rows.length === 0 ? none : <BarList label={t("domainsBy", { by: t(`by.${by}`) })} format={format} bars={rows.slice(0, 12).map((one) => ({ key: one.domain, name: <DomainLink domain={one.domain} />, value: one[by], tone: by === "errors" ? "bad" : "accent" }))} />}</Counted>
    } table={
      <Counted data={data}>
        <DataTable caption={t("domainsBy", { by: t(`by.${by}`) })} rows={rows} keyOf={(one) => one.domain} empty={none} columns={[
          { head: t("domain"), cell: (one) => <DomainLink domain={one.domain} /> },
          { head: t("captures"), isNumber: true, cell: (one) => count(one.captures) },
          { head: t("bytes"), isNumber: true, cell: (one) => bytes(one.bytes) },
          { head: t("errors"), isNumber: true, cell: (one) => count(one.errors) },
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
    <Card title={t("givenUp")} className="min-h-28">
      <DataTable caption={t("givenUpCaption")} rows={data?.unreachableHosts ?? []} keyOf={(host) => host.domain}
        empty={data ? <p className="text-soft">{t("noneGivenUp")}</p> : <Placeholder lines={1} />} columns={[
          { head: t("host"), cell: (host) => <DomainLink domain={host.domain} /> },
          { head: t("reason"), cell: (host) => <span className="break-words"><span lang="en">{host.reason}</span>{host.failures > 0 && <span className="text-soft"> {t("inARow", { count: host.failures })}</span>}</span> },
          { head: t("since"), cell: (host) => <Moment at={host.since} relative /> },
          { head: t("nextTry"), cell: (host) => <Moment at={host.nextTryAt} relative /> },
          { head: t("whatToDo"), cell: (host) => <>{t("hostStep", { host: host.domain })} <Link to="/control/domains/$domain" params={{ domain: host.domain }} aria-label={t("openHostOf", { host: host.domain })} className="inline-block min-h-6">{t("openHost")}</Link></> },
        ]} />
    </Card>
  );
}

function RecentPages({ data }: Shown) {
  return (
    <Card title={t("recent")} className="min-h-96">
      <DataTable caption={t("recentCaption")} rows={(data?.pages ?? []).slice(0, PAGES)} keyOf={(page) => `${page.executionId} ${page.completedAt} ${page.url}`}
        empty={data ? <p className="text-soft">{t("noRecent")}</p> : <Placeholder lines={10} />} columns={[
          { head: t("page"), cell: (page) => <PageCell page={page} /> },
          { head: t("outcome"), cell: (page) => <OutcomeCell page={page} /> },
          { head: t("when"), cell: (page) => <Moment at={page.completedAt} relative /> },
          { head: t("run"), cell: (page) => <Link to="/control/executions/$id" params={{ id: String(page.executionId) }} className="inline-block min-h-6">{page.sourceCode} #{page.executionId}</Link> },
          { head: <span className="sr-only">{t("explain")}</span>, cell: (page) => <Link to="/control/explain" search={{ url: page.url }} aria-label={t("explainOf", { url: page.url })} className="inline-block min-h-6">{t("explain")}</Link> },
        ]} />
    </Card>
  );
}

type Page = Figures["pages"][number];

function PageCell({ page }: { page: Page }) {
  const title = page.title ?? page.url;
  return (
    <span className="block min-w-0">
      {page.capturedAt ? <Link to="/view/$timestamp" params={{ timestamp: digits(page.capturedAt) }} search={{ url: page.url }} className="inline-block min-h-6 font-semibold wrap-anywhere">{title}</Link> : <span className="font-semibold break-words">{title}</span>}
      {page.title && <span className="block text-sm break-all text-soft">{page.url}</span>}
    </span>
  );
}

function OutcomeCell({ page }: { page: Page }) {
  return <><Tag tone={outcomeTone(page.outcome)}>{outcomeWord(page.word)}</Tag>{page.status !== null && <span className="block text-sm break-words text-soft">{statusName(page.status)}</span>}</>;
}
