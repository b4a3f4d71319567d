import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Operate } from "@/app/Operate";
import { Confirm } from "@/control/page/Confirm";
import type { Deed } from "@/control/page/Done";
import { count } from "@/control/charts/format";
import { Button } from "@/design/Button";
import { DataTable } from "@/design/DataTable";
import { Tag, type Tone } from "@/design/Tag";
import { useDecideShard, type EditionDetail, type Shard } from "./useEditions";
import { t } from "@/language/control/editions";
import { t as common } from "@/language/control/common";

function toneOf(status: string): Tone {
  return status === "indexed" ? "good" : /fail|cancel/.test(status) ? "bad" : /running|indexing/.test(status) ? "accent" : "plain";
}

function isDecided(row: Shard): row is Shard & { acceptanceState: string } {
  return /^(accepted|excluded)/.test(row.acceptanceState ?? "");
}

/** The jobs of an edition; a gap that cannot be closed is accepted with a reason, and that can be undone. */
export function Shards({ edition, onDone }: { edition: EditionDetail; onDone: (deed: Deed) => void }) {
  const decide = useDecideShard();
  const [shard, setShard] = useState<Shard | null>(null);
  return (
    <>
      <DataTable caption={t("shards")} rows={edition.shards ?? []} keyOf={(row) => row.jobId} empty={<p className="text-soft">{t("noShards")}</p>} columns={[
        { head: t("shard"), cell: (row) => <span className="break-words"><Link to="/control/jobs/$id" params={{ id: String(row.jobId) }}>{row.name}</Link> <span className="text-sm text-soft">({row.shardKey})</span></span> },
        { head: t("state"), cell: (row) => <Tag tone={toneOf(row.status)}>{t.of("shardState", row.status)}</Tag> },
        { head: t("pages"), isNumber: true, cell: (row) => t("ofAll", { part: row.pagesCrawled, all: row.pagesTotal }) },
        { head: t("failed"), isNumber: true, cell: (row) => count(row.pagesFailed) },
        { head: t("searchable"), isNumber: true, cell: (row) => count(row.indexedPageCount) },
        { head: t("gap"), cell: (row) => (
          <span className="flex flex-wrap items-center gap-2 break-words">
            {isDecided(row) && <>{t.of("state", row.acceptanceState)}{row.acceptanceReason && `: ${row.acceptanceReason}`}</>}
            <Operate><Button onClick={() => setShard(row)}>{t(isDecided(row) ? "undoAsk" : "acceptAGap")}</Button></Operate>
          </span>
        ) },
      ]} />
      {shard && !isDecided(shard) && (
        <Confirm title={t("acceptTitle", { name: shard.name })} action={t("acceptTheGap")} isDanger={false} reason={t("whyAccepted")} onClose={() => setShard(null)} onConfirm={async (reason) => {
          await decide.mutateAsync({ job: shard.jobId, state: "accepted_gap", reason });
          onDone({ title: t("gapAccepted", { name: shard.name }), text: t("gapAcceptedHow") });
        }}>
          <p>{t("acceptHow")}</p>
        </Confirm>
      )}
      {shard && isDecided(shard) && (
        <Confirm title={t("undoTitle", { name: shard.name })} action={t("act.pending")} isDanger={false} reason={common("reason")} onClose={() => setShard(null)} onConfirm={async (reason) => {
          await decide.mutateAsync({ job: shard.jobId, state: "pending", reason });
          onDone({ title: t("undone", { name: shard.name }), text: t("bothEntries") });
        }}>
          <p>{t("countsAgain")}</p>
        </Confirm>
      )}
    </>
  );
}
