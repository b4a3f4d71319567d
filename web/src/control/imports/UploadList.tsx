import { useState } from "react";
import { Problem } from "@/app/Problem";
import { Confirm } from "@/control/page/Confirm";
import { Moment } from "@/control/live/Moment";
import { ShowMore } from "@/control/page/ShowMore";
import { bytes } from "@/control/charts/format";
import { Button } from "@/design/Button";
import { DataTable } from "@/design/DataTable";
import { Tag, type Tone } from "@/design/Tag";
import { useTransfers } from "./transfers";
import { useEndUpload, useImportAgain, useUploads, type Upload } from "./useUploads";

const TONES: Record<Upload["state"], Tone> = { receiving: "accent", received: "accent", imported: "good", failed: "bad", terminated: "plain", expired: "plain" };

/** What has arrived, also from other browsers and programs; what is half here waits for its other half. */
export function UploadList() {
  const list = useUploads();
  const again = useImportAgain();
  const end = useEndUpload();
  const onTheirWay = useTransfers();
  const [ending, setEnding] = useState<Upload | null>(null);
  if (list.error) return <Problem problem={list.error} onAgain={() => void list.refetch()} />;
  if (!list.rows) return <p role="status" className="min-h-16 text-soft">Asking what has arrived…</p>;
  const halves = list.rows.filter((row) => row.state === "receiving" && !onTheirWay.some((one) => one.uploadId === row.id));
  return (
    <>
      {halves.length > 0 && <p className="mb-3">{halves.length === 1 ? "One file is" : `${halves.length} files are`} half here. Choose the same file again above, with the same source: it goes on where it was.</p>}
      {again.error ? <div className="mb-3"><Problem problem={again.error} /></div> : null}
      <DataTable
        caption="Uploaded files"
        rows={list.rows}
        keyOf={(row) => row.id}
        empty={<p className="text-soft">No file was uploaded yet.</p>}
        columns={[
          { head: "File", cell: (row) => <span className="break-all">{row.name}</span> },
          { head: "Source", cell: (row) => row.source },
          { head: "State", cell: (row) => <Tag tone={TONES[row.state]}>{row.state}</Tag> },
          { head: "Here", isNumber: true, cell: (row) => (row.received === row.size ? bytes(row.size) : `${bytes(row.received)} of ${bytes(row.size)}`) },
          { head: "Begun", cell: (row) => <Moment at={row.createdAt} /> },
          { head: "By", cell: (row) => row.startedBy },
          { head: <span className="sr-only">What can be done</span>, cell: (row) => (
            <span className="inline-flex flex-wrap justify-end gap-2">
              {row.state === "failed" && <Button disabled={again.isPending} onClick={() => again.mutate(row.id)}>Import again</Button>}
              {(row.state === "receiving" || row.state === "failed") && <Button kind="danger" onClick={() => setEnding(row)}>Remove</Button>}
            </span>
          ) },
        ]}
      />
      {list.hasNextPage && <ShowMore list={list} count={list.rows.length} noun="file" />}
      {ending && (
        <Confirm title={`Remove ${ending.name}?`} action={`Remove ${bytes(ending.received)}`} onClose={() => setEnding(null)} onConfirm={() => end.mutateAsync(ending.id)}>
          <p>The {bytes(ending.received)} that arrived of it go; to import it, the whole file has to be sent again. What is in the archive already stays.</p>
        </Confirm>
      )}
    </>
  );
}
