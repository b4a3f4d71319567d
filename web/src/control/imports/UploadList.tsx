import { useState } from "react";
import { Problem } from "@/app/Problem";
import { Confirm } from "@/control/page/Confirm";
import { Moment } from "@/control/live/Moment";
import { ShowMore } from "@/control/page/ShowMore";
import { bytes } from "@/control/charts/format";
import { Button } from "@/design/Button";
import { Card } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { useTransfers } from "./transfers";
import { useEndUpload, useImportAgain, useUploads, type Upload } from "./useUploads";

/** Uploads that need a person, also of other browsers and programs: those that stopped half-way, and those whose import failed. */
export function UploadList() {
  return <><Uploads state="receiving" /><Uploads state="failed" /></>;
}

const TITLES = { receiving: "Uploads to finish", failed: "Uploads that could not be imported" };

function Uploads({ state }: { state: "receiving" | "failed" }) {
  const list = useUploads(state);
  const again = useImportAgain();
  const end = useEndUpload();
  const onTheirWay = useTransfers();
  const [ending, setEnding] = useState<Upload | null>(null);
  if (list.error && !list.rows) return <Problem problem={list.error} onAgain={() => void list.refetch()} />;
  // What this window sends is listed as an upload above.
  const rows = (list.rows ?? []).filter((row) => !onTheirWay.some((one) => one.uploadId === row.id && one.state !== "failed"));
  if (rows.length === 0 && !list.hasNextPage) return null;
  return (
    <Card title={TITLES[state]}>
      {state === "receiving" && <p className="mb-3">{rows.length === 1 && !list.hasNextPage ? "One file is" : "These files are"} only partly here. Choose the same file again above, with the same source, to send the rest.</p>}
      {again.error ? <div className="mb-3"><Problem problem={again.error} /></div> : null}
      <DataTable
        caption={TITLES[state]}
        rows={rows}
        keyOf={(row) => row.id}
        empty={null}
        columns={[
          { head: "File", cell: (row) => <span className="break-all">{row.name}</span> },
          { head: "Source", cell: (row) => row.source },
          { head: "Here", isNumber: true, cell: (row) => (row.received === row.size ? bytes(row.size) : `${bytes(row.received)} of ${bytes(row.size)}`) },
          { head: "Started", cell: (row) => <Moment at={row.createdAt} /> },
          { head: "By", cell: (row) => row.startedBy },
          { head: <span className="sr-only">What can be done</span>, cell: (row) => (
            <span className="inline-flex flex-wrap justify-end gap-2">
              {state === "failed" && <Button disabled={again.isPending} onClick={() => again.mutate(row.id)}>Import again</Button>}
              <Button kind="danger" onClick={() => setEnding(row)}>Remove</Button>
            </span>
          ) },
        ]}
      />
      {list.hasNextPage && <ShowMore list={list} count={rows.length} noun="file" />}
      {ending && (
        <Confirm title={`Remove ${ending.name}?`} action={`Remove ${bytes(ending.received)}`} onClose={() => setEnding(null)} onConfirm={() => end.mutateAsync(ending.id)}>
          <p>The {bytes(ending.received)} that arrived are deleted; to import the file, it has to be sent again as a whole. What is in the archive already stays.</p>
        </Confirm>
      )}
    </Card>
  );
}
