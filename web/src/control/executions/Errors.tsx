import { Link } from "@tanstack/react-router";
import { Problem } from "@/app/Problem";
import { DataTable } from "@/design/DataTable";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";

import { missesOf, outcomeTone, outcomeWord, reasonText, type Reason } from "./outcomes";
import { useReport } from "./useExecution";
import { t } from "@/language/control/executions";

const SHOWN = 50;

/** What a run did not capture, grouped by reason: how often, some of the addresses, and all of them. */
export function Errors({ id, isRunning }: { id: number; isRunning: boolean }) {
  const { data: report, error, refetch } = useReport(id, isRunning);
  if (error && !report) return <Problem problem={error} onAgain={() => void refetch()} />;
  if (!report) return <div className="min-h-64" aria-busy />;
  const reasons = missesOf(report.reasons);
  return (
    <div className="min-h-48 space-y-3">
      <DataTable caption={t("missed")} rows={reasons.slice(0, SHOWN)} keyOf={(one) => `${one.outcome} ${one.reason}`} empty={<Notice tone={isRunning ? "info" : "good"} title={t("noErrors")}>{isRunning ? t("errorsHere") : t("allCaptured")}</Notice>} columns={[
        { head: t("reason"), cell: (one) => <Why one={one} /> },
        { head: t("addresses"), isNumber: true, cell: (one) => <Link to="/control/executions/$id" params={{ id: String(id) }} search={{ tab: "urls", reason: one.reason }} className="inline-block min-h-6">{t("addressCount", { count: one.count })}</Link> },
        { head: t("examples"), cell: (one) => <Examples one={one} /> },
      ]} />
      {reasons.length > SHOWN && <p className="text-sm text-soft">{t("rarer", { count: reasons.length - SHOWN })}</p>}
    </div>
  );
}

function Why({ one }: { one: Reason }) {
  return <><Tag tone={outcomeTone(one.outcome)}>{outcomeWord(one.word)}</Tag><span className="block text-sm break-all text-soft">{reasonText(one.reason)}</span></>;
}

function Examples({ one }: { one: Reason }) {
  return <ul className="space-y-0.5">{one.examples.map((url) => <li key={url}><Link to="/control/explain" search={{ url }} className="inline-block min-h-6 break-all">{url}<span className="sr-only">{t("explainIt")}</span></Link></li>)}</ul>;
}
