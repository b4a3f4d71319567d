import { Link } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { Problem } from "@/app/Problem";
import { Button, buttonClass } from "@/design/Button";
import { Card } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { SelectField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { Facts } from "../page/Facts";
import { NoWorker } from "./NoWorker";
import { amountsOf, hasParts, isGone, isTaken, pagesIn, reasonIn, robotsIn, scopeIn, timeFor, warningIn, type Scope, type Survey } from "./survey";
import { t } from "@/language/control/start";

function isPlace(found: string): found is "address" | "page" | "sitemap" {
  return found === "address" || found === "page" || found === "sitemap";
}

/** What a crawl would find, and the button that starts it. */
export function Surveyed({ survey, scope, onScope, onStart, isStarting, problem }: { survey: Survey; scope: Scope; onScope: (scope: Scope) => void; onStart: (pages: number | null) => void; isStarting: boolean; problem: Error | null }) {
  const amounts = amountsOf(survey);
  const [chosen, choose] = useState(0);
  const heading = useRef<HTMLHeadingElement>(null);
  // What was asked for stands below the form: the reader of a screen is taken there.
  useEffect(() => { heading.current?.focus(); }, [survey]);
  return (
    <section aria-label={t("would")} className="space-y-5">
      <h2 ref={heading} tabIndex={-1} className="text-xl break-words outline-none">{survey.name}</h2>
      {survey.source_id !== null && (
        <Notice title={t("haveIt")} actions={<Link to="/control/sources/$id" params={{ id: String(survey.source_id) }} className={buttonClass()}>{t("openSource")}</Link>}>
          {t("haveItHow")}
        </Notice>
      )}
      {isGone(survey) && <Notice tone="bad" title={t("gone", { status: String(survey.status) })}>{t("goneHow")}</Notice>}
      {!isGone(survey) && survey.warning_codes.map((code) => <Notice key={code} tone="warn" title={warningIn(survey, code)} />)}
      <Card title={t("would")}>
        <Facts facts={[
          [t("startsAt"), <span key="at" className="break-all">{survey.final_url}</span>],
          [t("scope"), scopeIn(survey, scope)],
          [t("pages"), pagesIn(survey)],
          [t("pace"), t(survey.robots.crawl_delay_s ? "paceRobots" : "paceIs", { seconds: survey.delay_s })],
          survey.page_count === null ? null : [t("time"), t("timeIs", { time: timeFor(survey.page_count, survey.delay_s) })],
          ["robots.txt", robotsIn(survey)],
          survey.sitemaps.length === 0 ? null : [t("sitemaps"), <ul key="maps">{survey.sitemaps.map((one) => <li key={one.url} className="break-all">{one.url} <span className="text-soft">({one.problem ? <span lang="en">{one.problem}</span> : t("entries", { count: one.entries })})</span></li>)}</ul>],
          [t("contact"), survey.contact],
        ]} />
        <div className="mt-5 space-y-4">
          <NoWorker />
          {survey.source_id === null && hasParts(survey.final_url) && (
            <SelectField label={t("take")} value={scope} onChange={(event) => onScope(event.target.value as Scope)} className="sm:max-w-md">
              {(["host", "prefix"] as const).map((one) => <option key={one} value={one}>{scopeIn(survey, one)}</option>)}
            </SelectField>
          )}
          {amounts.length > 1 && (
            <SelectField label={t("crawlNow")} value={chosen} onChange={(event) => choose(Number(event.target.value))} className="sm:max-w-md">
              {amounts.map(({ text }, at) => <option key={text} value={at}>{text}</option>)}
            </SelectField>
          )}
          {problem && <Problem problem={problem} />}
          {!isGone(survey) && <Button kind="main" disabled={isStarting} onClick={() => onStart(amounts[chosen]?.pages ?? null)}>{isStarting ? t("starting") : t("start")}</Button>}
        </div>
      </Card>
      <Card title={t("some")}>
        <DataTable caption={t("someCaption")} rows={survey.addresses} keyOf={({ url }) => url} empty={<p className="text-soft">{t("none")}</p>} columns={[
          { head: t("addressHead"), cell: ({ url }) => <span className="break-all">{url}</span> },
          { head: t("foundIn"), cell: ({ found_in }) => (isPlace(found_in) ? t(`found.${found_in}`) : found_in) },
          { head: t("crawled"), cell: (one) => <Tag tone={isTaken(one) ? "good" : "warn"}>{t(isTaken(one) ? "yes" : "no")}</Tag> },
          { head: t("why"), cell: (one) => <span className="text-sm text-soft break-words">{reasonIn(survey, one)}</span> },
        ]} />
      </Card>
      {survey.robots.lines.length > 0 && (
        <details className="rounded-card border border-line bg-sheet p-4">
          <summary className="min-h-6 font-semibold">{t("rules", { count: survey.robots.lines.length + survey.robots.lines_left_out })}</summary>
          <ol className="mt-2 space-y-1 font-mono text-sm">
            {survey.robots.lines.map(({ line, rule }) => <li key={line} className="flex gap-3"><span className="text-soft tabular-nums">{line}</span><span className="min-w-0 break-all">{rule}</span></li>)}
          </ol>
          {survey.robots.lines_left_out > 0 && <p className="mt-2 text-sm text-soft">{t("moreLines", { count: survey.robots.lines_left_out })}</p>}
        </details>
      )}
    </section>
  );
}
