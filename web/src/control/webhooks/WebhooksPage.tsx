import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Problem } from "@/app/Problem";
import { PageHead } from "@/control/page/PageHead";
import { refusedAt } from "@/control/page/refused";
import { Secret } from "@/control/page/Secret";
import { ShowMore } from "@/control/page/ShowMore";
import { Button } from "@/design/Button";
import { DataTable } from "@/design/DataTable";
import { Dialog } from "@/design/Dialog";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { WebhookFields, type Draft } from "./WebhookFields";
import { toldEvents } from "./events";
import { useAddWebhook, useWebhooks } from "./useWebhooks";
import { t } from "@/language/control/webhooks";
import { t as common } from "@/language/control/common";

const EMPTY: Draft = { url: "", description: "", events: [], sources: [] };

/** Other systems that are told what happens, with signed messages. */
export function WebhooksPage() {
  const list = useWebhooks();
  const [isAdding, setAdding] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  return (
    <>
      <PageHead title={t("webhooks")} actions={<Button kind="main" onClick={() => setAdding(true)}>{t("add")}</Button>}>{t("intro")}</PageHead>
      {list.error ? <Problem problem={list.error} onAgain={() => void list.refetch()} /> : null}
      <div className="min-h-64">
        <DataTable caption={t("webhooks")} rows={list.rows ?? []} keyOf={(row) => row.id} empty={list.rows ? <Notice title={t("none")} actions={<Button onClick={() => setAdding(true)}>{t("add")}</Button>}>{t("noneHow")}</Notice> : list.error ? null : <p role="status" className="text-soft">{common("loading")}</p>} columns={[
          { head: t("address"), cell: (row) => <Link to="/control/webhooks/$id" params={{ id: String(row.id) }} className="break-all">{row.url}</Link> },
          { head: t("state"), cell: (row) => <Tag tone={row.enabled ? "good" : "bad"}>{t(row.enabled ? "on" : "off")}</Tag> },
          { head: t("events"), cell: (row) => toldEvents(row.events) },
          { head: t("sources"), cell: (row) => row.sources.join(", ") || t("allSources") },
          { head: t("purpose"), cell: (row) => <span className="break-words">{row.description ?? ""}</span> },
        ]} />
        {list.hasNextPage && <ShowMore list={list} count={list.rows?.length ?? 0} noun="webhook" />}
      </div>
      {isAdding && <Add onClose={() => setAdding(false)} onDone={setSecret} />}
      {secret && <Secret title={t("secretTitle")} secret={secret} onClose={() => setSecret(null)}>{t("secretHow")}</Secret>}
    </>
  );
}

function Add({ onClose, onDone }: { onClose: () => void; onDone: (secret: string) => void }) {
  const add = useAddWebhook();
  const [draft, setDraft] = useState(EMPTY);
  const refused = refusedAt(add.error, "url");
  const go = () => add.mutate({ enabled: true, url: draft.url.trim(), events: draft.events, sources: draft.sources, ...(draft.description.trim() ? { description: draft.description.trim() } : {}) }, { onSuccess: (made) => { onClose(); if (made.secret) onDone(made.secret); } });
  return (
    <Dialog isOpen title={t("add")} onClose={onClose} actions={<><Button onClick={onClose}>{common("close")}</Button><Button kind="main" disabled={!draft.url.trim() || add.isPending} onClick={go}>{add.isPending ? t("adding") : t("addIt")}</Button></>}>
      <WebhookFields draft={draft} onChange={setDraft} urlProblem={refused} />
      {add.error && !refused ? <div className="mt-4"><Problem problem={add.error} /></div> : null}
    </Dialog>
  );
}
