import { Link } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { Problem } from "@/app/Problem";
import { Button, buttonClass } from "@/design/Button";
import { Card } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { SelectField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { count, counted } from "../charts/format";
import { Facts } from "../page/Facts";
import { NoWorker } from "./NoWorker";
import { amountsOf, isTaken, pagesIn, robotsIn, scopeIn, timeFor, type Survey } from "./survey";

const FOUND_IN: Record<string, string> = { address: "entered", page: "first page", sitemap: "sitemap" };

/** What a crawl would find, and the button that starts it. */
export function Surveyed({ survey, onStart, isStarting, problem }: { survey: Survey; onStart: (pages: number | null) => void; isStarting: boolean; problem: Error | null }) {
  const amounts = amountsOf(survey);
  const [chosen, choose] = useState(0);
  const heading = useRef<HTMLHeadingElement>(null);
  // What was asked for stands below the form: the reader of a screen is taken there.
  useEffect(() => { heading.current?.focus(); }, [survey]);
  return (
    <section aria-label="What would be crawled" className="space-y-5">
      <h2 ref={heading} tabIndex={-1} className="text-xl break-words outline-none">{survey.name}</h2>
      {survey.source_id !== null && (
        <Notice title="You have this site already." actions={<Link to="/control/sources/$id" params={{ id: String(survey.source_id) }} className={buttonClass()}>Open its source</Link>}>
          The crawl belongs to its source, whose settings decide what is crawled.
        </Notice>
      )}
      {survey.warnings.map((warning) => <Notice key={warning} tone="warn" title={warning} />)}
      <Card title="What would be crawled">
        <Facts facts={[
          ["Starts at", <span key="at" className="break-all">{survey.final_url}</span>],
          ["Scope", scopeIn(survey)],
          ["Pages", pagesIn(survey)],
          ["Pace", `One request every ${count(survey.delay_s)} s${survey.robots.crawl_delay_s ? ", as robots.txt asks" : ""}`],
          survey.page_count === null ? null : ["Time", `About ${timeFor(survey.page_count, survey.delay_s)} for the pages; images and style sheets come on top`],
          ["robots.txt", robotsIn(survey)],
          survey.sitemaps.length === 0 ? null : ["Sitemaps", <ul key="maps">{survey.sitemaps.map((one) => <li key={one.url} className="break-all">{one.url} <span className="text-soft">({one.problem ?? counted(one.entries, "entry", "entries")})</span></li>)}</ul>],
          ["Your contact", survey.contact],
        ]} />
        <div className="mt-5 space-y-4">
          <NoWorker />
          {amounts.length > 1 && (
            <SelectField label="Crawl now" value={chosen} onChange={(event) => choose(Number(event.target.value))} className="sm:max-w-md">
              {amounts.map(({ text }, at) => <option key={text} value={at}>{text}</option>)}
            </SelectField>
          )}
          {problem && <Problem problem={problem} />}
          <Button kind="main" disabled={isStarting} onClick={() => onStart(amounts[chosen]?.pages ?? null)}>{isStarting ? "Starting…" : "Start crawl"}</Button>
        </div>
      </Card>
      <Card title="Some of its addresses">
        <DataTable caption="Addresses that the site names, and whether they would be crawled" rows={survey.addresses} keyOf={({ url }) => url} empty={<p className="text-soft">The site names no addresses.</p>} columns={[
          { head: "Address", cell: ({ url }) => <span className="break-all">{url}</span> },
          { head: "Found in", cell: ({ found_in }) => FOUND_IN[found_in] ?? found_in },
          { head: "Crawled", cell: (one) => <Tag tone={isTaken(one) ? "good" : "warn"}>{isTaken(one) ? "yes" : "no"}</Tag> },
          { head: "Why", cell: (one) => <span className="text-sm text-soft break-words">{one.in_scope && one.allowed && one.reason === "no rule matches" ? "in scope, and robots.txt has no rule against it" : one.reason}</span> },
        ]} />
      </Card>
      {survey.robots.lines.length > 0 && (
        <details className="rounded-card border border-line bg-sheet p-4">
          <summary className="min-h-6 font-semibold">robots.txt: {counted(survey.robots.lines.length + survey.robots.lines_left_out, "rule")} for this crawler</summary>
          <ol className="mt-2 space-y-1 font-mono text-sm">
            {survey.robots.lines.map(({ line, rule }) => <li key={line} className="flex gap-3"><span className="text-soft tabular-nums">{line}</span><span className="min-w-0 break-all">{rule}</span></li>)}
          </ol>
          {survey.robots.lines_left_out > 0 && <p className="mt-2 text-sm text-soft">{counted(survey.robots.lines_left_out, "more line")}, not shown.</p>}
        </details>
      )}
    </section>
  );
}
