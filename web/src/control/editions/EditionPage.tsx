import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Operate } from "@/app/Operate";
import { Problem } from "@/app/Problem";
import { editionRoute } from "@/app/careRoutes";
import { count } from "@/control/charts/format";
import { Moment } from "@/control/live/Moment";
import { OperationList } from "@/control/operations/OperationRow";
import { Done, type Deed } from "@/control/page/Done";
import { Facts } from "@/control/page/Facts";
import { PageHead } from "@/control/page/PageHead";
import { Button } from "@/design/Button";
import { Card } from "@/design/Card";
import { Notice } from "@/design/Notice";
import { CoverageBar, EditionTag } from "./Coverage";
import { Decisions } from "./Decisions";
import { EditionWorkDialog, type Asking } from "./EditionWorkDialog";
import { Shards } from "./Shards";
import { useEdition, type EditionDetail } from "./useEditions";
import { t } from "@/language/control/editions";
import { t as common } from "@/language/control/common";

/** One edition: its account, its shards, and what makes it fit to be cited. */
export function EditionPage() {
  const id = Number(editionRoute.useParams().id);
  const { data, error, refetch } = useEdition(id);
  const [asking, setAsking] = useState<Asking | null>(null);
  const [deed, setDeed] = useState<Deed | null>(null);
  const title = data ? `${data.sourceName} ${data.year}` : t("edition");
  return (
    <>
      <p className="mb-2 text-sm"><Link to="/control/editions">{t("allEditions")}</Link></p>
      <PageHead title={title} actions={data && (
        <Operate>
          <Button onClick={() => setAsking("report")}>{t("writeReport")}</Button>
          <Button kind={data.frozenAt ? "plain" : "main"} onClick={() => setAsking("freeze")}>{data.frozenAt ? t("freezeAgain") : t("freeze")}</Button>
          <Button disabled={!data.frozenAt} onClick={() => setAsking("verify")}>{t("verify")}</Button>
          <Button onClick={() => setAsking("compare")}>{t("compare")}</Button>
        </Operate>
      )}>{data && <EditionTag edition={data} />}</PageHead>
      <Done deed={deed} onClose={() => setDeed(null)} />
      {error ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      {data ? <Shown edition={data} onDone={setDeed} /> : error ? null : <p role="status" className="min-h-96 text-soft">{common("loading")}</p>}
      {asking && data && <EditionWorkDialog asking={asking} edition={data} onClose={() => setAsking(null)} onDone={setDeed} />}
    </>
  );
}

function Shown({ edition, onDone }: { edition: EditionDetail; onDone: (deed: Deed) => void }) {
  const reasons = (edition.coverageSummary?.["reasons"] ?? []) as { outcome: string; reason: string; count: number }[];
  return (
    <div className="space-y-4">
      <Card title={t("coverage")}>
        <CoverageBar edition={edition} isLarge />
        {reasons.length > 0 && (
          <details className="mt-3"><summary className="min-h-6 font-semibold text-accent">{t("byReason")}</summary>
            <ul className="mt-1 columns-1 sm:columns-2">{reasons.map((one) => <li key={`${one.outcome} ${one.reason}`} className="break-words"><span className="tabular-nums">{count(one.count)}</span> {t.of("outcome", one.outcome)}: <span lang="en">{one.reason}</span></li>)}</ul>
          </details>
        )}
        {edition.missingSeeds !== undefined && edition.missingSeeds.length > 0 && <div className="mt-3"><Notice tone="warn" title={t("seedsMissing", { count: edition.missingSeeds.length })}>{edition.missingSeeds.map((seed, at) => <p key={at} className="break-all">{Object.values(seed).map(String).join(": ")}</p>)}</Notice></div>}
        <div className="mt-4"><Facts facts={[
          [t("searchable"), edition.searchReady ? common("yes") : t("notIndexed")],
          [t("research"), edition.researchReady ? common("yes") : edition.needsReviewShardCount ? t("toReview", { count: edition.needsReviewShardCount }) : t("notYet")],
          [t("reportWritten"), <Moment key="report" at={edition.generatedAt} none={t("notYet")} />],
          [t("frozen"), edition.frozenAt ? <span key="frozen"><Moment at={edition.frozenAt} />, {t("captures", { count: edition.frozenCount ?? 0 })}</span> : t("notYet")],
          edition.frozenDigest ? [t("digest"), <code key="digest" className="text-sm break-all">{edition.frozenDigest}</code>] : null,
        ]} /></div>
        {edition.coverageReportMdPath && <p className="mt-3 flex flex-wrap gap-x-4"><a href={`/api/coverage/${encodeURIComponent(edition.sourceCode)}/${edition.year}`}>{t("reportJson")}</a><a href={`/api/coverage/${encodeURIComponent(edition.sourceCode)}/${edition.year}/edition.wacz`}>{t("wacz")}</a></p>}
      </Card>
      <Card title={t("shards")}><Shards edition={edition} onDone={onDone} /></Card>
      <Card title={t("decisions")}><Decisions edition={edition} onDone={onDone} /></Card>
      <Card title={t("works")}><OperationList kinds={["report_edition", "freeze_edition", "verify_edition", "compare_editions"]} empty={t("noWorks")} /></Card>
    </div>
  );
}
