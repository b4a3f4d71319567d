import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Operate } from "@/app/Operate";
import { Confirm } from "@/control/page/Confirm";
import type { Deed } from "@/control/page/Done";
import { plain } from "@/control/page/words";
import { Button } from "@/design/Button";
import { DataTable } from "@/design/DataTable";
import { Tag, type Tone } from "@/design/Tag";
import { useDecideShard, type EditionDetail, type Shard } from "./useEditions";

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
      <DataTable caption="Shards" rows={edition.shards ?? []} keyOf={(row) => row.jobId} empty={<p className="text-soft">It has no shards.</p>} columns={[
        { head: "Shard", cell: (row) => <span className="break-words"><Link to="/control/jobs/$id" params={{ id: String(row.jobId) }}>{row.name}</Link> <span className="text-sm text-soft">({row.shardKey})</span></span> },
        { head: "State", cell: (row) => <Tag tone={toneOf(row.status)}>{plain(row.status)}</Tag> },
        { head: "Pages", isNumber: true, cell: (row) => `${row.pagesCrawled.toLocaleString("en")} of ${row.pagesTotal.toLocaleString("en")}` },
        { head: "Failed", isNumber: true, cell: (row) => row.pagesFailed.toLocaleString("en") },
        { head: "Searchable", isNumber: true, cell: (row) => row.indexedPageCount.toLocaleString("en") },
        { head: "Gap", cell: (row) => (
          <span className="flex flex-wrap items-center gap-2 break-words">
            {isDecided(row) && <>{plain(row.acceptanceState)}{row.acceptanceReason && `: ${row.acceptanceReason}`}</>}
            <Operate><Button onClick={() => setShard(row)}>{isDecided(row) ? "Undo…" : "Accept a gap…"}</Button></Operate>
          </span>
        ) },
      ]} />
      {shard && !isDecided(shard) && (
        <Confirm title={`Accept the gap of ${shard.name}?`} action="Accept the gap" isDanger={false} reason="Why it is accepted" onClose={() => setShard(null)} onConfirm={async (reason) => {
          await decide.mutateAsync({ job: shard.jobId, state: "accepted_gap", reason });
          onDone({ title: `The gap of ${shard.name} is accepted`, text: "The report of the edition says why, and that it was you." });
        }}>
          <p>What this shard did not capture no longer keeps the edition from being ready. Readers of the report see the reason. You can undo it here.</p>
        </Confirm>
      )}
      {shard && isDecided(shard) && (
        <Confirm title={`Undo the decision about ${shard.name}?`} action="Undo" isDanger={false} reason="Reason" onClose={() => setShard(null)} onConfirm={async (reason) => {
          await decide.mutateAsync({ job: shard.jobId, state: "pending", reason });
          onDone({ title: `The decision about ${shard.name} is undone`, text: "The audit log keeps both entries." });
        }}>
          <p>The shard counts again as it was captured.</p>
        </Confirm>
      )}
    </>
  );
}
