import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Operate } from "@/app/Operate";
import { Problem } from "@/app/Problem";
import { domainRoute } from "@/app/careRoutes";
import { Confirm } from "@/control/page/Confirm";
import { Done, type Deed } from "@/control/page/Done";
import { Facts } from "@/control/page/Facts";
import { Moment } from "@/control/live/Moment";
import { PageHead } from "@/control/page/PageHead";
import { count } from "@/control/charts/format";
import { Button, buttonClass } from "@/design/Button";
import { Card } from "@/design/Card";
import { RobotsCard } from "./RobotsCard";
import { SettingsCard } from "./SettingsCard";
import { CircuitTag, DomainTag, meaningOf } from "./states";
import { useDomain, usePurgeDomain, useResetCircuit, type DomainDetail } from "./useDomains";
import { t } from "@/language/control/domains";
import { withParts } from "@/language/room";

/** One domain: how it stands, what its robots.txt says, what operators set for it. */
export function DomainPage() {
  const { domain } = domainRoute.useParams();
  const { data, error, refetch } = useDomain(domain);
  const [deed, setDeed] = useState<Deed | null>(null);
  return (
    <>
      <p className="mb-2 text-sm"><Link to="/control/domains">{t("all")}</Link></p>
      <PageHead title={<span className="break-all">{domain}</span>} name={domain} actions={
        <Link to="/control/frontier" search={{ domain }} className={buttonClass()}>{t("viewAddresses")}</Link>
      }>{data ? meaningOf(data.state) : null}</PageHead>
      <Done deed={deed} onClose={() => setDeed(null)} />
      {error ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      {data ? (
        <div className="grid grid-cols-1 items-start gap-4 lg:grid-cols-2">
          <StateCard found={data} onDone={setDeed} />
          <SettingsCard key={`${data.crawlDelay}-${data.isAllowed}-${data.paused}`} found={data} onDone={setDeed} />
          <div className="lg:col-span-2"><RobotsCard domain={domain} onDone={setDeed} /></div>
        </div>
      ) : error ? null : <p role="status" className="min-h-96 text-soft">{t("loading")}</p>}
    </>
  );
}

function StateCard({ found, onDone }: { found: DomainDetail; onDone: (deed: Deed) => void }) {
  const [open, setOpen] = useState<"reset" | "purge" | null>(null);
  const reset = useResetCircuit(found.domain);
  const purge = usePurgeDomain(found.domain);
  const queued = found.queue?.pending ?? 0;
  return (
    <Card title={t("status")} actions={
      <Operate>
        <Button disabled={found.circuit === "closed" && !found.unreachableSince} onClick={() => setOpen("reset")}>{t("reset")}</Button>
        <Button kind="danger" onClick={() => setOpen("purge")}>{t("purge")}</Button>
      </Operate>
    }>
      <Facts facts={[
        [t("state"), <DomainTag key="state" state={found.state} />],
        [t("circuit"), <span key="circuit"><CircuitTag circuit={found.circuit} />{found.circuitFailures > 0 && `, ${t("failures", { count: found.circuitFailures })}`}{found.circuitOpenedAt && <>, {withParts(t("opened"), { time: <Moment at={found.circuitOpenedAt} /> })}</>}</span>],
        found.unreachableSince ? [t("unreachableSince"), <Moment key="since" at={found.unreachableSince} />] : null,
        [t("nextRequest"), found.state === "ready" ? t("atOnce") : <Moment key="next" at={found.nextAllowedAt} none={t("atOnce")} />],
        [t("slowed"), found.slowDown > 1 ? t("slowedBy", { times: found.slowDown }) : t("no")],
        [t("pagesKnown"), found.pageCount >= 10_000 ? t("orMore", { count: found.pageCount }) : count(found.pageCount)],
        [t("firstSeen"), <Moment key="met" at={found.createdAt} />],
        found.queue ? [t("newest"), <span key="queue"><Link to="/control/executions/$id" params={{ id: String(found.queue.executionId) }}>{t("run", { id: String(found.queue.executionId) })}</Link>: {t("queueIs", { queued: found.queue.pending, done: found.queue.completed, failed: found.queue.failed, out: found.queue.ruledOut })}</span>] : [t("newest"), t("nothing")],
      ]} />
      {open === "reset" && (
        <Confirm title={t("resetTitle")} action={t("resetDo")} isDanger={false} onClose={() => setOpen(null)} onConfirm={async () => {
          const done = await reset.mutateAsync(undefined);
          onDone({ title: done.changed ? t("resetDone") : t("resetBefore") });
        }}><p>{t("resetHow")}</p></Confirm>
      )}
      {open === "purge" && (
        <Confirm title={t("purgeTitle", { domain: found.domain })} action={t("purgeDo")} onClose={() => setOpen(null)} onConfirm={async (_, tell) => {
          const removed = await purge.mutateAsync((sofar) => tell(t("removing", { count: sofar })));
          onDone({ title: t("removed", { count: removed }), text: t("removedHow") });
        }}>
          <p>{queued ? t("purgeCount", { count: queued }) : t("purgeNone")} {t("purgeHow")}</p>
          <p>{t("stays")}</p>
        </Confirm>
      )}
    </Card>
  );
}
