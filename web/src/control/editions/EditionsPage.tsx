import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Operate } from "@/app/Operate";
import { Problem } from "@/app/Problem";
import { editionsRoute } from "@/app/careRoutes";
import { Moment } from "@/control/live/Moment";
import { Done, type Deed } from "@/control/page/Done";
import { PageHead } from "@/control/page/PageHead";
import { Button } from "@/design/Button";
import { DataTable } from "@/design/DataTable";
import { SelectField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { useSourceChoices } from "@/control/sources/useSources";
import { CoverageBar, EditionTag } from "./Coverage";
import { PlanEditions } from "./PlanEditions";
import { readAskedEditions, type AskedEditions } from "./asked";
import { useEditions } from "./useEditions";
import { t } from "@/language/control/editions";
import { t as common } from "@/language/control/common";

/** The yearly editions of all sources: how far each is, and what keeps it from being ready. */
export function EditionsPage() {
  const asked = readAskedEditions({ ...editionsRoute.useSearch() });
  const navigate = useNavigate();
  const sources = useSourceChoices();
  const { data, error, refetch } = useEditions(asked);
  const [isPlanning, setPlanning] = useState(false);
  const [deed, setDeed] = useState<Deed | null>(null);
  const go = (change: Partial<AskedEditions>) => void navigate({ to: "/control/editions", search: readAskedEditions({ ...asked, ...change }), replace: true });
  const years = [...new Set(data?.items.map((one) => one.year) ?? [])].sort((a, b) => b - a);
  return (
    <>
      <PageHead title={t("editions")} actions={<Operate><Button kind="main" onClick={() => setPlanning(true)}>{t("planYear")}</Button></Operate>}>{t("intro")}</PageHead>
      <Done deed={deed} onClose={() => setDeed(null)} />
      <div className="mb-4 grid items-end gap-3 sm:grid-cols-[16rem_10rem]">
        <SelectField label={t("source")} value={asked.source ?? ""} onChange={(event) => go({ source: event.target.value || undefined })}>
          <option value="">{t("all")}</option>
          {sources?.map((one) => <option key={one.code} value={one.code}>{one.name}</option>)}
        </SelectField>
        <SelectField label={t("year")} value={asked.year ?? ""} onChange={(event) => go({ year: event.target.value ? Number(event.target.value) : undefined })}>
          <option value="">{t("all")}</option>
          {[...new Set([...years, ...(asked.year ? [asked.year] : [])])].map((year) => <option key={year} value={year}>{year}</option>)}
        </SelectField>
      </div>
      {error ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      <div className="min-h-64">
        <DataTable caption={t("editions")} rows={data?.items ?? []} keyOf={(row) => row.editionId} empty={data ? <Notice title={t("none")} actions={<Operate><Button kind="main" onClick={() => setPlanning(true)}>{t("planYear")}</Button></Operate>}>{t("noneHow")}</Notice> : <p role="status" className="text-soft">{common("loading")}</p>} columns={[
          { head: t("edition"), cell: (row) => <Link to="/control/editions/$id" params={{ id: String(row.editionId) }}>{row.sourceName} {row.year}</Link> },
          { head: t("state"), cell: (row) => <EditionTag edition={row} /> },
          { head: t("coverage"), cell: (row) => <CoverageBar edition={row} /> },
          { head: t("shards"), isNumber: true, cell: (row) => t("ofAll", { part: row.indexedShardCount, all: row.shardCount }) },
          { head: t("frozen"), cell: (row) => <Moment at={row.frozenAt} none={t("notYet")} /> },
        ]} />
      </div>
      {data && data.total > data.items.length && <p className="mt-2 text-sm text-soft">{t("newest", { number: data.items.length, total: data.total })}</p>}
      {isPlanning && <PlanEditions onClose={() => setPlanning(false)} onDone={setDeed} />}
    </>
  );
}
