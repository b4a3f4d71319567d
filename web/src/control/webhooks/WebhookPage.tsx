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
import { withParts } from "@/language/room";
import { Deliveries } from "./Deliveries";
import { OffSince } from "./OffSince";
import { WebhookFields } from "./WebhookFields";
import { useChangeWebhook, useDeleteWebhook, useRotateSecret, useTestWebhook, useWebhook, type Webhook } from "./useWebhooks";
import { t } from "@/language/control/webhooks";
import { t as common } from "@/language/control/common";

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
      <p className="mb-2 text-sm"><Link to="/control/webhooks">{t("allWebhooks")}</Link></p>
      <PageHead title={<span className="break-all">{data?.url ?? t("webhook")}</span>} name={data?.url ?? t("webhook")} actions={<Button kind="main" disabled={!data || test.isPending} onClick={() => test.mutate(undefined, { onSuccess: () => setDeed({ title: t("testSent"), text: t("testHow") }) })}>{test.isPending ? t("sending") : t("sendTest")}</Button>}>{data?.description}</PageHead>
      <Done deed={deed} onClose={() => setDeed(null)} />
      {error || test.error ? <div className="mb-4"><Problem problem={error ?? test.error} onAgain={() => void refetch()} /></div> : null}
      {data ? (
        <div className="space-y-4">
          {!data.enabled && <Notice tone="bad" title={t("switchedOff")}><OffSince reason={data.disabledReason} at={data.disabledAt} /></Notice>}
          <Card title={t("deliveries")}><Deliveries id={id} /></Card>
          <Change key={data.updatedAt} webhook={data} onDone={setDeed} onSecret={setSecret} />
        </div>
      ) : error ? null : <p role="status" className="min-h-96 text-soft">{common("loading")}</p>}
      {secret && <Secret title={t("newSecretTitle")} secret={secret} onClose={() => setSecret(null)}>{t("secretHow")}</Secret>}
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
    onDone({ title: t("changed"), ...(done.secret ? {} : { undo: () => change.mutateAsync(was) }) });
  }
  return (
    <Card title={t("settings")} actions={
      <>
        <Button onClick={() => setOpen("rotate")}>{t("newSecret")}</Button>
        <Button onClick={() => { void change.mutateAsync({ enabled: !webhook.enabled }).then((done) => onDone({ title: t(done.enabled ? "isOn" : "isOff"), undo: () => change.mutateAsync({ enabled: webhook.enabled }) })).catch(() => undefined); }}>{t(webhook.enabled ? "switchOff" : "switchOn")}</Button>
        <Button kind="danger" onClick={() => setOpen("delete")}>{t("delete")}</Button>
      </>
    }>
      <form className="space-y-4" onSubmit={(event) => { event.preventDefault(); save().catch(() => undefined); }}>
        {webhook.previousSecretUntil && <p className="text-soft">{withParts(t("oldSecret"), { time: <Moment at={webhook.previousSecretUntil} /> })}</p>}
        <WebhookFields draft={draft} onChange={setDraft} urlProblem={refused} />
        {change.error && !refused ? <Problem problem={change.error} /> : null}
        <Button type="submit" kind="main" disabled={!draft.url.trim() || change.isPending}>{change.isPending ? t("saving") : t("save")}</Button>
      </form>
      {open === "rotate" && (
        <Confirm title={t("rotateTitle")} action={t("rotate")} onClose={() => setOpen(null)} onConfirm={async () => onSecret((await rotate.mutateAsync(isKnown)).secret ?? null)}>
          <p>{t("rotateHow")}</p>
          <label className="flex min-h-6 items-start gap-2"><input type="checkbox" className="mt-1 size-4 accent-accent" checked={isKnown} onChange={(event) => setKnown(event.target.checked)} /><span>{t("known")}</span></label>
        </Confirm>
      )}
      {open === "delete" && (
        <Confirm title={t("deleteTitle")} action={t("delete")} onClose={() => setOpen(null)} onConfirm={async () => { await remove.mutateAsync(undefined); await navigate({ to: "/control/webhooks" }); }}>
          <p>{t("deleteHow")}</p>
        </Confirm>
      )}
    </Card>
  );
}
