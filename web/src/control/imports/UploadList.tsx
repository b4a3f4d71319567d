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
import { t } from "@/language/control/imports";
import { t as common } from "@/language/control/common";

/** Uploads that need a person, also of other browsers and programs: those that stopped half-way, and those whose import failed. */
export function UploadList() {
  return <><Uploads state="receiving" /><Uploads state="failed" /></>;
}

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
    <Card title={t(`title.${state}`)}>
      {state === "receiving" && <p className="mb-3">{t("partly", { count: list.hasNextPage ? 2 : rows.length })}</p>}
      {again.error ? <div className="mb-3"><Problem problem={again.error} /></div> : null}
      <DataTable
        caption={t(`title.${state}`)}
        rows={rows}
        keyOf={(row) => row.id}
        empty={null}
        columns={[
          { head: t("file"), cell: (row) => <span className="break-all">{row.name}</span> },
          { head: t("source"), cell: (row) => row.source },
          { head: t("here"), isNumber: true, cell: (row) => (row.received === row.size ? bytes(row.size) : t("ofSize", { done: bytes(row.received), total: bytes(row.size) })) },
          { head: t("started"), cell: (row) => <Moment at={row.createdAt} /> },
          { head: t("by"), cell: (row) => row.startedBy },
          { head: <span className="sr-only">{common("actions")}</span>, cell: (row) => (
            <span className="inline-flex flex-wrap justify-end gap-2">
              {state === "failed" && <Button disabled={again.isPending} onClick={() => again.mutate(row.id)}>{t("again")}</Button>}
              <Button kind="danger" onClick={() => setEnding(row)}>{t("remove")}</Button>
            </span>
          ) },
        ]}
      />
      {list.hasNextPage && <ShowMore list={list} count={rows.length} noun="file" />}
      {ending && (
        <Confirm title={t("removeTitle", { name: ending.name })} action={t("removeBytes", { size: bytes(ending.received) })} onClose={() => setEnding(null)} onConfirm={() => end.mutateAsync(ending.id)}>
          <p>{t("removeHow", { size: bytes(ending.received) })}</p>
        </Confirm>
      )}
    </Card>
  );
}
