import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Confirm } from "@/control/page/Confirm";
import type { Deed } from "@/control/page/Done";
import { plain } from "@/control/page/words";
import { Button } from "@/design/Button";
import { DataTable } from "@/design/DataTable";
import { Tag, type Tone } from "@/design/Tag";
import { useAcceptGap, type EditionDetail, type Shard } from "./useEditions";

function toneOf(status: string): Tone {
  return status === "indexed" ? "good" : /fail|cancel/.test(status) ? "bad" : /running|indexing/.test(status) ? "accent" : "plain";
}

/** The jobs of an edition; a gap that cannot be closed is accepted with a reason. */
export function Shards({ edition, onDone }: { edition: EditionDetail; onDone: (deed: Deed) => void }) {
  const accept = useAcceptGap();
  const [shard, setShard] = useState<Shard | null>(null);
  return (
    <>
      <DataTable caption="Shards" rows={edition.shards} keyOf={(row) => row.jobId} empty={<p className="text-soft">It has no shards.</p>} columns={[
        { head: "Shard", cell: (row) => <span className="break-words"><Link to="/control/jobs/$id" params={{ id: String(row.jobId) }}>{row.name}</Link> <span className="text-sm text-soft">({row.shardKey})</span></span> },
        { head: "State", cell: (row) => <Tag tone={toneOf(row.status)}>{plain(row.status)}</Tag> },
        { head: "Pages", isNumber: true, cell: (row) => `${row.pagesCrawled.toLocaleString("en")} of ${row.pagesTotal.toLocaleString("en")}` },
        { head: "Failed", isNumber: true, cell: (row) => row.pagesFailed.toLocaleString("en") },
        { head: "Searchable", isNumber: true, cell: (row) => row.indexedPageCount.toLocaleString("en") },
        { head: "Gap", cell: (row) => (row.acceptanceState?.startsWith("accepted") ? <span className="break-words">{plain(row.acceptanceState)}{row.acceptanceReason && `: ${row.acceptanceReason}`}</span> : <Button onClick={() => setShard(row)}>Accept a gap…</Button>) },
      ]} />
      {shard && (
        <Confirm title={`Accept the gap of ${shard.name}?`} action="Accept the gap" isDanger={false} reason="Why it is accepted" onClose={() => setShard(null)} onConfirm={async (reason) => {
          await accept.mutateAsync({ job: shard.jobId, reason });
          onDone({ title: `The gap of ${shard.name} is accepted`, text: "The report of the edition says why, and that it was you." });
        }}>
          <p>What this shard did not bring no longer keeps the edition from being ready. Readers of the report see the reason. It cannot be taken back here; another crawl of the shard can still close the gap.</p>
        </Confirm>
      )}
    </>
  );
}
