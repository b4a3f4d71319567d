import { Problem } from "@/app/Problem";
import { Card, Placeholder } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { Tag } from "@/design/Tag";
import { bytes, count } from "../charts/format";
import { Meter } from "../charts/Meter";
import { useStores } from "./useOverview";

/** How much room the disks have, and what each store takes of it. */
export function Stores() {
  const { state, stores } = useStores();
  return (
    <Card title="Disk" className="min-h-48">
      {(state.error && !state.data) || (stores.error && !stores.data) ? <div className="mb-4"><Problem problem={state.error ?? stores.error} onAgain={() => { void state.refetch(); void stores.refetch(); }} /></div> : null}
      <div className="grid gap-6 lg:grid-cols-2">
        <ul className="space-y-4">
          {state.data?.volumes.map((volume) => {
            const used = volume.totalBytes - volume.freeBytes;
            return (
              <li key={volume.holds.join()}>
                <p className="flex flex-wrap items-center justify-between gap-2">
                  <span className="font-semibold">{volume.holds.join(", ")}</span>
                  <span className="text-sm tabular-nums">{bytes(volume.freeBytes)} free of {bytes(volume.totalBytes)} <Tag tone={volume.isLow ? "bad" : "good"}>{volume.isLow ? "nearly full" : "room"}</Tag></span>
                </p>
                <Meter label={`${volume.holds.join(", ")}: used`} value={used} most={volume.totalBytes} tone={volume.isLow ? "bad" : "accent"} />
              </li>
            );
          })}
        </ul>
        <DataTable caption="What each store takes" rows={stores.data?.stores ?? []} keyOf={(store) => store.name} empty={stores.error ? null : <Placeholder lines={5} />} columns={[
          { head: "Store", cell: (store) => store.name.replaceAll("_", " ") },
          { head: "Files", isNumber: true, cell: (store) => (store.files === null ? "–" : count(store.files)) },
          { head: "Size", isNumber: true, cell: (store) => <>{store.whole ? "" : "over "}{bytes(store.bytes)}</> },
        ]} />
      </div>
    </Card>
  );
}
