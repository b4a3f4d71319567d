import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Operate } from "@/app/Operate";
import { Problem } from "@/app/Problem";
import { editionRoute } from "@/app/careRoutes";
import { counted } from "@/control/charts/format";
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

/** One edition: its account, its shards, and what makes it fit to be cited. */
export function EditionPage() {
  const id = Number(editionRoute.useParams().id);
  const { data, error, refetch } = useEdition(id);
  const [asking, setAsking] = useState<Asking | null>(null);
  const [deed, setDeed] = useState<Deed | null>(null);
  const title = data ? `${data.sourceName} ${data.year}` : "Edition";
  return (
    <>
      <p className="mb-2 text-sm"><Link to="/control/editions">All editions</Link></p>
      <PageHead title={title} actions={data && (
        <Operate>
          <Button onClick={() => setAsking("report")}>Write the report</Button>
          <Button kind={data.frozenAt ? "plain" : "main"} onClick={() => setAsking("freeze")}>{data.frozenAt ? "Freeze again" : "Freeze"}</Button>
          <Button disabled={!data.frozenAt} onClick={() => setAsking("verify")}>Verify</Button>
          <Button onClick={() => setAsking("compare")}>Compare</Button>
        </Operate>
      )}>{data && <EditionTag edition={data} />}</PageHead>
      <Done deed={deed} onClose={() => setDeed(null)} />
      {error ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      {data ? <Shown edition={data} onDone={setDeed} /> : error ? null : <p role="status" className="min-h-96 text-soft">Opening the edition…</p>}
      {asking && data && <EditionWorkDialog asking={asking} edition={data} onClose={() => setAsking(null)} onDone={setDeed} />}
    </>
  );
}

function Shown({ edition, onDone }: { edition: EditionDetail; onDone: (deed: Deed) => void }) {
  const reasons = (edition.coverageSummary?.["reasons"] ?? []) as { outcome: string; reason: string; count: number }[];
  return (
    <div className="space-y-4">
      <Card title="Coverage">
        <CoverageBar edition={edition} isLarge />
        {reasons.length > 0 && (
          <details className="mt-3"><summary className="min-h-6 font-semibold text-accent">By reason</summary>
            <ul className="mt-1 columns-1 sm:columns-2">{reasons.map((one) => <li key={`${one.outcome} ${one.reason}`} className="break-words"><span className="tabular-nums">{one.count.toLocaleString("en")}</span> {one.outcome}: {one.reason}</li>)}</ul>
          </details>
        )}
        {edition.missingSeeds !== undefined && edition.missingSeeds.length > 0 && <div className="mt-3"><Notice tone="warn" title={`${counted(edition.missingSeeds.length, "seed was", "seeds were")} not captured`}>{edition.missingSeeds.map((seed, at) => <p key={at} className="break-all">{Object.values(seed).map(String).join(": ")}</p>)}</Notice></div>}
        <div className="mt-4"><Facts facts={[
          ["Can be searched", edition.searchReady ? "yes" : "not yet: a shard is not indexed"],
          ["Fit for research", edition.researchReady ? "yes" : edition.needsReviewShardCount ? `not yet: ${counted(edition.needsReviewShardCount, "shard")} to review` : "not yet"],
          ["Report written", <Moment key="report" at={edition.generatedAt} none="not yet" />],
          ["Frozen", edition.frozenAt ? <span key="frozen"><Moment at={edition.frozenAt} />, {counted(edition.frozenCount ?? 0, "capture")}</span> : "not yet"],
          edition.frozenDigest ? ["Digest to cite", <code key="digest" className="text-sm break-all">{edition.frozenDigest}</code>] : null,
        ]} /></div>
        {edition.coverageReportMdPath && <p className="mt-3 flex flex-wrap gap-x-4"><a href={`/api/coverage/${encodeURIComponent(edition.sourceCode)}/${edition.year}`}>Report as JSON</a><a href={`/api/coverage/${encodeURIComponent(edition.sourceCode)}/${edition.year}/edition.wacz`}>All captures as WACZ</a></p>}
      </Card>
      <Card title="Shards"><Shards edition={edition} onDone={onDone} /></Card>
      <Card title="Decisions about pages"><Decisions edition={edition} onDone={onDone} /></Card>
      <Card title="Reports, freezes and comparisons"><OperationList kinds={["report_edition", "freeze_edition", "verify_edition", "compare_editions"]} empty="Nothing was started yet." /></Card>
    </div>
  );
}
