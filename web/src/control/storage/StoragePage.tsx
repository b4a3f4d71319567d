import { useState } from "react";
import { Operate } from "@/app/Operate";
import { Problem } from "@/app/Problem";
import { Done, type Deed } from "@/control/page/Done";
import { Meter } from "@/control/page/Meter";
import { Moment } from "@/control/live/Moment";
import { PageHead } from "@/control/page/PageHead";
import { bytes, counted } from "@/control/charts/format";
import { Button } from "@/design/Button";
import { Card, Figure } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { CleanUp } from "./CleanUp";
import { Growth } from "./Growth";
import { useStorageState, useStores, type StorageState } from "./useStorage";

const STORES: Record<string, string> = { database: "Database", warcs: "WARC files", search: "Search index", cache: "Caches", other: "Everything else" };

/** What the archive takes, how it grows, and how much room is left. */
export function StoragePage() {
  const state = useStorageState();
  const [isCleaning, setCleaning] = useState(false);
  const [deed, setDeed] = useState<Deed | null>(null);
  return (
    <>
      <PageHead title="Storage" actions={<Operate><Button onClick={() => setCleaning(true)}>Clean up</Button></Operate>}>What the archive takes, how it grows, and how much room is left.</PageHead>
      <Done deed={deed} onClose={() => setDeed(null)} />
      {state.error ? <div className="mb-4"><Problem problem={state.error} onAgain={() => void state.refetch()} /></div> : null}
      <dl className="mb-4 grid min-h-24 grid-cols-2 gap-3 sm:grid-cols-4">
        <Figure label="WARC files" value={state.data?.warcFiles.toLocaleString("en") ?? "–"} />
        <Figure label="Their size" value={state.data ? bytes(state.data.warcBytes) : "–"} />
        <Figure label="Still to come of uploads" value={state.data ? bytes(state.data.uploadsOutstandingBytes) : "–"} />
        <Figure label="Last verification" value={state.data?.lastVerification ? state.data.lastVerification.state : "never"} note={state.data?.lastVerification ? <Moment at={state.data.lastVerification.createdAt} /> : undefined} />
      </dl>
      <div className="grid grid-cols-1 gap-4 lg:grid-cols-2">
        <Card title="Growth" className="min-h-72 min-w-0 lg:col-span-2">{state.data && <Growth state={state.data} now={Math.floor(state.dataUpdatedAt / 1000)} />}</Card>
        <Card title="Disks">{state.data && <Disks state={state.data} />}</Card>
        <Card title="What takes the room"><Stores /></Card>
        <Card title="By source" className="lg:col-span-2">
          <DataTable caption="Size by source" rows={state.data?.sources ?? []} keyOf={(row) => row.source} empty={<p className="text-soft">{state.data ? "Nothing is kept yet: the first crawl or import fills this." : "Asking…"}</p>} columns={[
            { head: "Source", cell: (row) => row.source },
            { head: "Files", isNumber: true, cell: (row) => row.files.toLocaleString("en") },
            { head: "Size", isNumber: true, cell: (row) => bytes(row.bytes) },
            { head: "Share", isNumber: true, cell: (row) => `${((100 * row.bytes) / Math.max(1, state.data?.warcBytes ?? 1)).toFixed(1)} %` },
          ]} />
        </Card>
      </div>
      {isCleaning && <CleanUp onClose={() => setCleaning(false)} onDone={setDeed} />}
    </>
  );
}

function Disks({ state }: { state: StorageState }) {
  return (
    <ul className="space-y-3">
      {state.volumes.map((volume) => (
        <li key={volume.holds.join()}>
          <p className="mb-1 flex flex-wrap items-center gap-2">{volume.holds.join(", ")} {volume.isLow && <Tag tone="bad">low</Tag>}</p>
          <Meter label={`Used of the disk of ${volume.holds.join(", ")}`} done={volume.totalBytes - volume.freeBytes} total={volume.totalBytes} text={`${bytes(volume.freeBytes)} free of ${bytes(volume.totalBytes)}`} />
          {volume.isLow && <div className="mt-2"><Notice tone="bad" title="Nothing new starts on this disk">Make room, or lower HOLDFAST_DISK_FREE_BYTES or HOLDFAST_DISK_FREE_PERCENT.</Notice></div>}
        </li>
      ))}
    </ul>
  );
}

function Stores() {
  const { data, error, refetch } = useStores();
  if (error) return <Problem problem={error} onAgain={() => void refetch()} />;
  if (!data) return <p role="status" className="min-h-24 text-soft">Weighing…</p>;
  return (
    <>
      <DataTable caption="What takes the room" rows={data.stores} keyOf={(row) => row.name} empty={null} columns={[
        { head: "What", cell: (row) => STORES[row.name] ?? row.name },
        { head: "Files", isNumber: true, cell: (row) => row.files?.toLocaleString("en") ?? "–" },
        { head: "Size", isNumber: true, cell: (row) => `${row.whole ? "" : "more than "}${bytes(row.bytes)}` },
      ]} />
      {data.tables.length > 0 && (
        <details className="mt-3"><summary className="min-h-6 font-semibold text-accent">The largest tables</summary>
          <DataTable caption="Tables" rows={data.tables} keyOf={(row) => row.table} empty={null} columns={[
            { head: "Table", cell: (row) => <code className="text-sm">{row.table}</code> },
            { head: "Rows", isNumber: true, cell: (row) => counted(row.rows, "row") },
            { head: "Size", isNumber: true, cell: (row) => bytes(row.bytes) },
          ]} />
        </details>
      )}
    </>
  );
}
