import { useState } from "react";
import { Operate } from "@/app/Operate";
import { Problem } from "@/app/Problem";
import { Done, type Deed } from "@/control/page/Done";
import { Meter } from "@/control/page/Meter";
import { Moment } from "@/control/live/Moment";
import { PageHead } from "@/control/page/PageHead";
import { bytes, count, share } from "@/control/charts/format";
import { Button } from "@/design/Button";
import { Card, Figure } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { t as operations } from "@/language/control/operations";
import { CleanUp } from "./CleanUp";
import { Growth } from "./Growth";
import { useStorageState, useStores, type StorageState } from "./useStorage";
import { t } from "@/language/control/storage";
import { t as common } from "@/language/control/common";

/** What the archive takes, how it grows, and how much room is left. */
export function StoragePage() {
  const state = useStorageState();
  const [isCleaning, setCleaning] = useState(false);
  const [deed, setDeed] = useState<Deed | null>(null);
  return (
    <>
      <PageHead title={t("title")} actions={<Operate><Button onClick={() => setCleaning(true)}>{t("cleanUp")}</Button></Operate>}>{t("intro")}</PageHead>
      <Done deed={deed} onClose={() => setDeed(null)} />
      {state.error ? <div className="mb-4"><Problem problem={state.error} onAgain={() => void state.refetch()} /></div> : null}
      <dl className="mb-4 grid min-h-24 grid-cols-2 gap-3 sm:grid-cols-4">
        <Figure label={t("warcFiles")} value={state.data ? count(state.data.warcFiles) : "–"} />
        <Figure label={t("warcSize")} value={state.data ? bytes(state.data.warcBytes) : "–"} />
        <Figure label={t("uploads")} value={state.data ? bytes(state.data.uploadsOutstandingBytes) : "–"} />
        <Figure label={t("lastVerification")} value={state.data?.lastVerification ? operations.of("state", state.data.lastVerification.state) : common("never")} note={state.data?.lastVerification ? <Moment at={state.data.lastVerification.createdAt} /> : undefined} />
      </dl>
      <div className="grid grid-cols-1 gap-4 lg:grid-cols-2">
        <Card title={t("growth")} className="min-h-72 min-w-0 lg:col-span-2">{state.data && <Growth state={state.data} now={Math.floor(state.dataUpdatedAt / 1000)} />}</Card>
        <Card title={t("disks")}>{state.data && <Disks state={state.data} />}</Card>
        <Card title={t("takes")}><Stores /></Card>
        <Card title={t("bySource")} className="lg:col-span-2">
          <DataTable caption={t("sizeBySource")} rows={state.data?.sources ?? []} keyOf={(row) => row.source} empty={<p className="text-soft">{state.data ? t("nothing") : common("loading")}</p>} columns={[
            { head: t("source"), cell: (row) => row.source },
            { head: t("files"), isNumber: true, cell: (row) => count(row.files) },
            { head: t("size"), isNumber: true, cell: (row) => bytes(row.bytes) },
            { head: t("share"), isNumber: true, cell: (row) => share(row.bytes / Math.max(1, state.data?.warcBytes ?? 1)) },
          ]} />
        </Card>
      </div>
      {isCleaning && <CleanUp onClose={() => setCleaning(false)} onDone={setDeed} />}
    </>
  );
}

function holdsOf(volume: StorageState["volumes"][number]): string {
  return volume.holds.map((one) => t.of("holds", one)).join(", ");
}

function Disks({ state }: { state: StorageState }) {
  return (
    <ul className="space-y-3">
      {state.volumes.map((volume) => (
        <li key={volume.holds.join()}>
          <p className="mb-1 flex flex-wrap items-center gap-2">{holdsOf(volume)} {volume.isLow && <Tag tone="bad">{t("low")}</Tag>}</p>
          <Meter label={t("used", { name: holdsOf(volume) })} done={volume.totalBytes - volume.freeBytes} total={volume.totalBytes} text={t("freeOf", { free: bytes(volume.freeBytes), total: bytes(volume.totalBytes) })} />
          {volume.isLow && <div className="mt-2"><Notice tone="bad" title={t("full")}>{t("fullHow")}</Notice></div>}
        </li>
      ))}
    </ul>
  );
}

function Stores() {
  const { data, error, refetch } = useStores();
  if (error) return <Problem problem={error} onAgain={() => void refetch()} />;
  if (!data) return <p role="status" className="min-h-24 text-soft">{common("loading")}</p>;
  return (
    <>
      <DataTable caption={t("takes")} rows={data.stores} keyOf={(row) => row.name} empty={null} columns={[
        { head: t("what"), cell: (row) => t.of("store", row.name) },
        { head: t("files"), isNumber: true, cell: (row) => (row.files === null ? "–" : count(row.files)) },
        { head: t("size"), isNumber: true, cell: (row) => (row.whole ? bytes(row.bytes) : t("moreThan", { size: bytes(row.bytes) })) },
      ]} />
      {data.tables.length > 0 && (
        <details className="mt-3"><summary className="min-h-6 font-semibold text-accent">{t("tables")}</summary>
          <DataTable caption={t("tablesCaption")} rows={data.tables} keyOf={(row) => row.table} empty={null} columns={[
            { head: t("table"), cell: (row) => <code className="text-sm">{row.table}</code> },
            { head: t("rows"), isNumber: true, cell: (row) => count(row.rows) },
            { head: t("size"), isNumber: true, cell: (row) => bytes(row.bytes) },
          ]} />
        </details>
      )}
    </>
  );
}
