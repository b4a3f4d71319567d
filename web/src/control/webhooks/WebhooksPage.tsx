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

const EMPTY: Draft = { url: "", description: "", events: [], sources: [] };

/** Other systems that are told what happens, with signed messages. */
export function WebhooksPage() {
  const list = useWebhooks();
  const [isAdding, setAdding] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  return (
    <>
      <PageHead title="Webhooks" actions={<Button kind="main" onClick={() => setAdding(true)}>Add a webhook</Button>}>Other systems are told what happens here, with messages signed by the Standard Webhooks convention. What fails is tried again, for days.</PageHead>
      {list.error ? <Problem problem={list.error} onAgain={() => void list.refetch()} /> : null}
      <div className="min-h-64">
        <DataTable caption="Webhooks" rows={list.rows ?? []} keyOf={(row) => row.id} empty={list.rows ? <Notice title="No other system is told yet" actions={<Button onClick={() => setAdding(true)}>Add a webhook</Button>}>Give an address and choose what it is told of; then send a test.</Notice> : list.error ? null : <p role="status" className="text-soft">Asking…</p>} columns={[
          { head: "Address", cell: (row) => <Link to="/control/webhooks/$id" params={{ id: String(row.id) }} className="break-all">{row.url}</Link> },
          { head: "State", cell: (row) => <Tag tone={row.enabled ? "good" : "bad"}>{row.enabled ? "on" : "off"}</Tag> },
          { head: "Told of", cell: (row) => toldEvents(row.events) },
          { head: "Sources", cell: (row) => row.sources.join(", ") || "all" },
          { head: "For", cell: (row) => <span className="break-words">{row.description ?? ""}</span> },
        ]} />
        {list.hasNextPage && <ShowMore list={list} count={list.rows?.length ?? 0} noun="webhook" />}
      </div>
      {isAdding && <Add onClose={() => setAdding(false)} onDone={setSecret} />}
      {secret && <Secret title="The webhook's secret" secret={secret} onClose={() => setSecret(null)}>Give it to the system that receives the messages: it checks their signatures with it.</Secret>}
    </>
  );
}

function Add({ onClose, onDone }: { onClose: () => void; onDone: (secret: string) => void }) {
  const add = useAddWebhook();
  const [draft, setDraft] = useState(EMPTY);
  const refused = refusedAt(add.error, "url");
  const go = () => add.mutate({ enabled: true, url: draft.url.trim(), events: draft.events, sources: draft.sources, ...(draft.description.trim() ? { description: draft.description.trim() } : {}) }, { onSuccess: (made) => { onClose(); if (made.secret) onDone(made.secret); } });
  return (
    <Dialog isOpen title="Add a webhook" onClose={onClose} actions={<><Button onClick={onClose}>Close</Button><Button kind="main" disabled={!draft.url.trim() || add.isPending} onClick={go}>{add.isPending ? "Adding…" : "Add it"}</Button></>}>
      <WebhookFields draft={draft} onChange={setDraft} urlProblem={refused} />
      {add.error && !refused ? <div className="mt-4"><Problem problem={add.error} /></div> : null}
    </Dialog>
  );
}
