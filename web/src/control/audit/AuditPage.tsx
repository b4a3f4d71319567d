import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Problem } from "@/app/Problem";
import { auditRoute } from "@/app/careRoutes";
import { Moment } from "@/control/live/Moment";
import { PageHead } from "@/control/page/PageHead";
import { ShowMore } from "@/control/page/ShowMore";
import { Button } from "@/design/Button";
import { DataTable } from "@/design/DataTable";
import { TextField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { readAskedAudit, type AskedAudit } from "./asked";
import { useAudit, type AuditEvent } from "./useAudit";
import { t } from "@/language/control/audit";
import { t as common } from "@/language/control/common";

/** Who did what, when, from where and why: newest first, never changed. */
export function AuditPage() {
  const asked = readAskedAudit({ ...auditRoute.useSearch() });
  const navigate = useNavigate();
  const list = useAudit(asked);
  const [draft, setDraft] = useState<AskedAudit>(asked);
  const go = (wanted: AskedAudit) => {
    setDraft(wanted);
    void navigate({ to: "/control/audit", search: readAskedAudit({ ...wanted }), replace: true });
  };
  const field = (name: keyof AskedAudit) => ({ value: draft[name] ?? "", onChange: (event: { target: { value: string } }) => setDraft({ ...draft, [name]: event.target.value }) });
  return (
    <>
      <PageHead title={t("title")}>{t("intro")}</PageHead>
      <form role="search" aria-label={t("filterLog")} className="mb-4 grid items-end gap-3 sm:grid-cols-2 lg:grid-cols-[1fr_1fr_1fr_10rem_10rem_auto]" onSubmit={(event) => { event.preventDefault(); go(draft); }}>
        <TextField label={t("who")} {...field("actor")} maxLength={200} placeholder="ada@127.0.0.1" />
        <TextField label={t("didWhat")} {...field("action")} maxLength={200} placeholder="takedown" />
        <TextField label={t("toWhat")} {...field("subject")} maxLength={200} placeholder="user ada" />
        <TextField label={t("from")} {...field("from")} type="date" />
        <TextField label={t("to")} {...field("to")} type="date" />
        <div className="flex gap-2"><Button type="submit">{t("filter")}</Button>{Object.keys(asked).length > 0 && <Button kind="bare" onClick={() => go({})}>{t("all")}</Button>}</div>
      </form>
      {list.error ? <Problem problem={list.error} onAgain={() => void list.refetch()} /> : null}
      <div className="min-h-96" aria-busy={list.isFetching}>
        <DataTable caption={t("title")} rows={list.rows ?? []} keyOf={(row) => row.id} empty={list.rows ? <Notice title={common("noMatches")}>{t("noneHow")}</Notice> : list.error ? null : <p role="status" className="text-soft">{common("loading")}</p>} columns={[
          { head: t("when"), cell: (row) => <span className="text-sm whitespace-nowrap"><Moment at={row.at} /></span> },
          { head: t("who"), cell: (row) => <button type="button" className="min-h-6 text-left wrap-anywhere text-accent underline decoration-line underline-offset-4 hover:decoration-accent" onClick={() => go({ ...asked, actor: row.actor })}>{row.actor}</button> },
          { head: t("didWhat"), cell: (row) => <button type="button" className="min-h-6 text-left wrap-anywhere text-accent underline decoration-line underline-offset-4 hover:decoration-accent" onClick={() => go({ ...asked, action: row.action })}>{actionName(row.action)}</button> },
          { head: t("toWhat"), cell: (row) => <button type="button" className="min-h-6 text-left wrap-anywhere text-accent underline decoration-line underline-offset-4 hover:decoration-accent" onClick={() => go({ ...asked, subject: row.subject })}>{row.subject}</button> },
          { head: t("detail"), cell: (row) => <Detail event={row} /> },
        ]} />
        {list.rows && list.rows.length > 0 && <ShowMore list={list} count={list.rows.length} noun="event" />}
      </div>
    </>
  );
}

/** Name an action; one that only an older release recorded is named by its code. */
function actionName(action: string): string {
  return `action.${action}` in t.en ? t.of("action", action) : action;
}

function Detail({ event }: { event: AuditEvent }) {
  const parts = Object.entries(event.detail);
  if (parts.length === 0) return null;
  return <span className="text-sm break-all">{parts.map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join("; ")}</span>;
}
