import { Problem } from "@/app/Problem";
import { Card, Placeholder } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { Tag } from "@/design/Tag";
import { bytes, count } from "../charts/format";
import { Meter } from "../charts/Meter";
import { useStores } from "./useOverview";
import { t } from "@/language/control/overview";

/** How much room the disks have, and what each store takes of it. */
export function Stores() {
  const { state, stores } = useStores();
  return (
    <Card title={t("disks")} className="min-h-48">
      {(state.error && !state.data) || (stores.error && !stores.data) ? <div className="mb-4"><Problem problem={state.error ?? stores.error} onAgain={() => { void state.refetch(); void stores.refetch(); }} /></div> : null}
      <div className="grid gap-6 lg:grid-cols-2">
        <ul className="space-y-4">
          {state.data?.volumes.map((volume) => {
            const used = volume.totalBytes - volume.freeBytes;
            return (
              <li key={volume.holds.join()}>
                <p className="flex flex-wrap items-center justify-between gap-2">
                  <span className="font-semibold">{volume.holds.join(", ")}</span>
                  <span className="text-sm tabular-nums">{t("freeOf", { free: bytes(volume.freeBytes), total: bytes(volume.totalBytes) })} <Tag tone={volume.isLow ? "bad" : "good"}>{t(volume.isLow ? "nearlyFull" : "room")}</Tag></span>
                </p>
                <Meter label={t("usedOf", { name: volume.holds.join(", ") })} value={used} most={volume.totalBytes} tone={volume.isLow ? "bad" : "accent"} />
              </li>
            );
          })}
        </ul>
        <DataTable caption={t("storesCaption")} rows={stores.data?.stores ?? []} keyOf={(store) => store.name} empty={stores.error ? null : <Placeholder lines={5} />} columns={[
          { head: t("store"), cell: (store) => store.name.replaceAll("_", " ") },
          { head: t("files"), isNumber: true, cell: (store) => (store.files === null ? "–" : count(store.files)) },
          { head: t("size"), isNumber: true, cell: (store) => (store.whole ? bytes(store.bytes) : t("overSize", { size: bytes(store.bytes) })) },
        ]} />
      </div>
    </Card>
  );
}
