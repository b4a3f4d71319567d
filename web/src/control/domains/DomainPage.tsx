import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Problem } from "@/app/Problem";
import { domainRoute } from "@/app/careRoutes";
import { Confirm } from "@/control/page/Confirm";
import { Done, type Deed } from "@/control/page/Done";
import { Facts } from "@/control/page/Facts";
import { Moment } from "@/control/live/Moment";
import { PageHead } from "@/control/page/PageHead";
import { counted } from "@/control/charts/format";
import { Button, buttonClass } from "@/design/Button";
import { Card } from "@/design/Card";
import { RobotsCard } from "./RobotsCard";
import { SettingsCard } from "./SettingsCard";
import { CircuitTag, DomainTag, MEANS } from "./states";
import { useDomain, usePurgeDomain, useResetCircuit, type DomainDetail } from "./useDomains";

/** One domain: how it stands, what its robots.txt says, what operators set for it. */
export function DomainPage() {
  const { domain } = domainRoute.useParams();
  const { data, error, refetch } = useDomain(domain);
  const [deed, setDeed] = useState<Deed | null>(null);
  return (
    <>
      <p className="mb-2 text-sm"><Link to="/control/domains">All domains</Link></p>
      <PageHead title={<span className="break-all">{domain}</span>} name={domain} actions={
        <Link to="/control/frontier" search={{ domain }} className={buttonClass()}>Its addresses</Link>
      }>{data ? MEANS[data.state] : null}</PageHead>
      <Done deed={deed} onClose={() => setDeed(null)} />
      {error ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      {data ? (
        <div className="grid grid-cols-1 items-start gap-4 lg:grid-cols-2">
          <StateCard found={data} onDone={setDeed} />
          <SettingsCard key={`${data.crawlDelay}-${data.isAllowed}-${data.paused}`} found={data} onDone={setDeed} />
          <div className="lg:col-span-2"><RobotsCard domain={domain} onDone={setDeed} /></div>
        </div>
      ) : error ? null : <p role="status" className="min-h-96 text-soft">Asking how it stands…</p>}
    </>
  );
}

function StateCard({ found, onDone }: { found: DomainDetail; onDone: (deed: Deed) => void }) {
  const [open, setOpen] = useState<"reset" | "purge" | null>(null);
  const reset = useResetCircuit(found.domain);
  const purge = usePurgeDomain(found.domain);
  const queued = found.queue?.pending ?? 0;
  return (
    <Card title="How it stands" actions={
      <>
        <Button disabled={found.circuit === "closed" && !found.unreachableSince} onClick={() => setOpen("reset")}>Reset circuit</Button>
        <Button kind="danger" onClick={() => setOpen("purge")}>Purge queue</Button>
      </>
    }>
      <Facts facts={[
        ["State", <DomainTag key="state" state={found.state} />],
        ["Circuit", <span key="circuit"><CircuitTag circuit={found.circuit} />{found.circuitFailures > 0 && `, ${counted(found.circuitFailures, "failure")} in a row`}{found.circuitOpenedAt && <>, opened <Moment at={found.circuitOpenedAt} /></>}</span>],
        found.unreachableSince ? ["Unreachable since", <Moment key="since" at={found.unreachableSince} />] : null,
        ["Next request", found.state === "ready" ? "at once" : <Moment key="next" at={found.nextAllowedAt} none="at once" />],
        ["Slowed down", found.slowDown > 1 ? `${found.slowDown} times the delay, after 429 or 503` : "no"],
        ["Pages known", `${found.pageCount.toLocaleString("en")}${found.pageCount >= 10_000 ? " or more" : ""}`],
        ["First met", <Moment key="met" at={found.createdAt} />],
        found.queue ? ["In the newest crawl", <span key="queue"><Link to="/control/executions/$id" params={{ id: String(found.queue.executionId) }}>execution {found.queue.executionId}</Link>: {`${found.queue.pending.toLocaleString("en")} queued, ${found.queue.completed.toLocaleString("en")} done, ${found.queue.failed.toLocaleString("en")} failed, ${found.queue.ruledOut.toLocaleString("en")} ruled out`}</span>] : ["In the newest crawl", "nothing of it"],
      ]} />
      {open === "reset" && (
        <Confirm title="Forget its failures?" action="Reset the circuit" isDanger={false} onClose={() => setOpen(null)} onConfirm={async () => {
          const done = await reset.mutateAsync(undefined);
          onDone({ title: done.changed ? "The circuit is closed: the domain is asked at once" : "The circuit was closed already" });
        }}><p>The next request goes out at once, and failures are counted from nothing. If the site is still down, the circuit opens again.</p></Confirm>
      )}
      {open === "purge" && (
        <Confirm title={`Take ${found.domain} from all queues?`} action="Purge what is queued" onClose={() => setOpen(null)} onConfirm={async (_, tell) => {
          const removed = await purge.mutateAsync((sofar) => tell(`${counted(sofar, "address is", "addresses are")} taken away so far`));
          onDone({ title: `${counted(removed, "queued address was", "queued addresses were")} taken away`, text: "What was captured stays; the next run of a source finds them again." });
        }}>
          <p>{queued ? `${counted(queued, "address is", "addresses are")} queued in the newest crawl.` : "Nothing is queued in the newest crawl; other executions may have something."} All that is queued of this domain, in every execution, will not be asked for. This cannot be undone.</p>
          <p>What was captured stays.</p>
        </Confirm>
      )}
    </Card>
  );
}
