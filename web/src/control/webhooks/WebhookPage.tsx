import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Problem } from "@/app/Problem";
import { webhookRoute } from "@/app/careRoutes";
import { Moment } from "@/control/live/Moment";
import { Confirm } from "@/control/page/Confirm";
import { Done, type Deed } from "@/control/page/Done";
import { PageHead } from "@/control/page/PageHead";
import { refusedAt } from "@/control/page/refused";
import { Secret } from "@/control/page/Secret";
import { Button } from "@/design/Button";
import { Card } from "@/design/Card";
import { Notice } from "@/design/Notice";
import { Deliveries } from "./Deliveries";
import { WebhookFields } from "./WebhookFields";
import { useChangeWebhook, useDeleteWebhook, useRotateSecret, useTestWebhook, useWebhook, type Webhook } from "./useWebhooks";

/** One webhook: what it is told of, its secret, and every message that was sent. */
export function WebhookPage() {
  const id = Number(webhookRoute.useParams().id);
  const { data, error, refetch } = useWebhook(id);
  const test = useTestWebhook(id);
  const [deed, setDeed] = useState<Deed | null>(null);
  // Not among the settings: those are made anew when the webhook has changed, and a new secret is shown this once.
  const [secret, setSecret] = useState<string | null>(null);
  return (
    <>
      <p className="mb-2 text-sm"><Link to="/control/webhooks">All webhooks</Link></p>
      <PageHead title={<span className="break-all">{data?.url ?? "Webhook"}</span>} name={data?.url ?? "Webhook"} actions={<Button kind="main" disabled={!data || test.isPending} onClick={() => test.mutate(undefined, { onSuccess: () => setDeed({ title: "A test is on its way", text: "What came of it stands among the deliveries in a moment." }) })}>{test.isPending ? "Sending…" : "Send a test"}</Button>}>{data?.description}</PageHead>
      <Done deed={deed} onClose={() => setDeed(null)} />
      {error || test.error ? <div className="mb-4"><Problem problem={error ?? test.error} onAgain={() => void refetch()} /></div> : null}
      {data ? (
        <div className="space-y-4">
          {!data.enabled && <Notice tone="bad" title="It is switched off: nothing is sent">{data.disabledReason}{data.disabledAt && <>, since <Moment at={data.disabledAt} /></>}</Notice>}
          <Card title="Deliveries"><Deliveries id={id} /></Card>
          <Change key={data.updatedAt} webhook={data} onDone={setDeed} onSecret={setSecret} />
        </div>
      ) : error ? null : <p role="status" className="min-h-96 text-soft">Opening…</p>}
      {secret && <Secret title="The new secret" secret={secret} onClose={() => setSecret(null)}>Give it to the system that receives the messages: it checks their signatures with it.</Secret>}
    </>
  );
}

function Change({ webhook, onDone, onSecret }: { webhook: Webhook; onDone: (deed: Deed) => void; onSecret: (secret: string | null) => void }) {
  const navigate = useNavigate();
  const change = useChangeWebhook(webhook.id);
  const remove = useDeleteWebhook(webhook.id);
  const rotate = useRotateSecret(webhook.id);
  const [draft, setDraft] = useState({ url: webhook.url, description: webhook.description ?? "", events: webhook.events, sources: webhook.sources });
  const [open, setOpen] = useState<"delete" | "rotate" | null>(null);
  const [isKnown, setKnown] = useState(false);
  const refused = refusedAt(change.error, "url");
  async function save() {
    const was = { url: webhook.url, description: webhook.description, events: webhook.events, sources: webhook.sources };
    const done = await change.mutateAsync({ ...draft, url: draft.url.trim(), description: draft.description.trim() || null });
    if (done.secret) onSecret(done.secret);
    onDone({ title: "The webhook is changed", ...(done.secret ? {} : { undo: () => change.mutateAsync(was) }) });
  }
  return (
    <Card title="Settings" actions={
      <>
        <Button onClick={() => setOpen("rotate")}>New secret</Button>
        <Button onClick={() => { void change.mutateAsync({ enabled: !webhook.enabled }).then((done) => onDone({ title: done.enabled ? "It is switched on" : "It is switched off", undo: () => change.mutateAsync({ enabled: webhook.enabled }) })).catch(() => undefined); }}>{webhook.enabled ? "Switch off" : "Switch on"}</Button>
        <Button kind="danger" onClick={() => setOpen("delete")}>Delete</Button>
      </>
    }>
      <form className="space-y-4" onSubmit={(event) => { event.preventDefault(); save().catch(() => undefined); }}>
        {webhook.previousSecretUntil && <p className="text-soft">Until <Moment at={webhook.previousSecretUntil} /> messages are signed with the old secret, too.</p>}
        <WebhookFields draft={draft} onChange={setDraft} urlProblem={refused} />
        {change.error && !refused ? <Problem problem={change.error} /> : null}
        <Button type="submit" kind="main" disabled={!draft.url.trim() || change.isPending}>{change.isPending ? "Saving…" : "Save"}</Button>
      </form>
      {open === "rotate" && (
        <Confirm title="Make a new secret?" action="Make a new secret" onClose={() => setOpen(null)} onConfirm={async () => onSecret((await rotate.mutateAsync(isKnown)).secret ?? null)}>
          <p>For a day messages are signed with both, so that the other system has time to change.</p>
          <label className="flex min-h-6 items-start gap-2"><input type="checkbox" className="mt-1 size-4 accent-accent" checked={isKnown} onChange={(event) => setKnown(event.target.checked)} /><span>The old one is known to others: stop signing with it at once</span></label>
        </Confirm>
      )}
      {open === "delete" && (
        <Confirm title="Delete this webhook?" action="Delete" onClose={() => setOpen(null)} onConfirm={async () => { await remove.mutateAsync(undefined); await navigate({ to: "/control/webhooks" }); }}>
          <p>The address is told of nothing any more; its log of deliveries and its secret go for good. To stop for a while, switch it off instead.</p>
        </Confirm>
      )}
    </Card>
  );
}
