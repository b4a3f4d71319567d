import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Problem } from "@/app/Problem";
import { ApiProblem } from "@/api/problem";
import { frontierRoute } from "@/app/careRoutes";
import { Confirm } from "@/control/page/Confirm";
import { Done, type Deed } from "@/control/page/Done";
import { PageHead } from "@/control/page/PageHead";
import { counted } from "@/control/charts/format";
import { Button, buttonClass } from "@/design/Button";
import { Figure } from "@/design/Card";
import { Notice } from "@/design/Notice";
import { AddUrls, toldOf } from "./AddUrls";
import { Filters } from "./Filters";
import { UrlList } from "./UrlList";
import { readAskedFrontier, type AskedFrontier } from "./asked";
import { useClearFrontier, useFrontierStats, useRecover } from "./useFrontier";

type Open = "add" | "recover" | "clear" | null;

/** What a crawl still has to ask for, and what became of the rest. */
export function FrontierPage() {
  const asked = readAskedFrontier({ ...frontierRoute.useSearch() });
  const navigate = useNavigate();
  const stats = useFrontierStats(asked.execution);
  const recover = useRecover();
  const clear = useClearFrontier();
  const [open, setOpen] = useState<Open>(null);
  const [deed, setDeed] = useState<Deed | null>(null);
  const go = (change: Partial<AskedFrontier>) => void navigate({ to: "/control/frontier", search: readAskedFrontier({ ...asked, ...change }), replace: true });
  const isEmpty = stats.error instanceof ApiProblem && stats.error.status === 404 && asked.execution === undefined;
  const close = () => setOpen(null);
  return (
    <>
      <PageHead title="Frontier" actions={
        <>
          <Button kind="main" onClick={() => setOpen("add")}>Add addresses</Button>
          <Button onClick={() => setOpen("recover")}>Recover</Button>
          <Button kind="danger" disabled={!stats.data?.pending} onClick={() => setOpen("clear")}>Clear</Button>
        </>
      }>
        The addresses that a run still has to request, and what became of the others.
      </PageHead>
      <p className="mb-4 min-h-6">
        {stats.data && <>Shown: <Link to="/control/executions/$id" params={{ id: String(stats.data.executionId) }}>run {stats.data.executionId}</Link> of {stats.data.sourceCode}, {stats.data.state}.</>}
      </p>
      <Done deed={deed} onClose={() => setDeed(null)} />
      {isEmpty ? (
        <Notice title="No addresses yet" actions={<Link to="/control/sources" className={buttonClass("main")}>Go to sources</Link>}>
          The addresses of the newest run appear here: queued, requested, failed and ruled out. Open a source and press Run now.
        </Notice>
      ) : (
        <>
          {stats.error ? <div className="mb-4"><Problem problem={stats.error} onAgain={() => void stats.refetch()} /></div> : null}
          <dl className="mb-5 grid min-h-24 grid-cols-2 gap-3 sm:grid-cols-3 lg:grid-cols-6">
            <Figure label="Queued" value={stats.data?.pending.toLocaleString("en") ?? "–"} />
            <Figure label="Under way" value={stats.data?.inProgress.toLocaleString("en") ?? "–"} note="one request a domain" />
            <Figure label="Done" value={stats.data?.completed.toLocaleString("en") ?? "–"} />
            <Figure label="Failed" value={stats.data?.failed.toLocaleString("en") ?? "–"} />
            <Figure label="Ruled out" value={stats.data?.ruledOut.toLocaleString("en") ?? "–"} />
            <Figure label="Domains" value={stats.data?.totalDomains.toLocaleString("en") ?? "–"} note={stats.data?.pausedDomains ? `${stats.data.pausedDomains} paused` : undefined} />
          </dl>
          {stats.data && stats.data.waiting > 0 && <div className="mb-4"><Notice title={`${counted(stats.data.waiting, "address waits", "addresses wait")} for the next run of the source`}>They were added by hand while no run was under way.</Notice></div>}
          <Filters asked={asked} onChange={go} />
          <UrlList asked={asked} />
        </>
      )}
      {open === "add" && <AddUrls onClose={close} onDone={(receipt) => setDeed({ title: `${counted(receipt.added, "address was", "addresses were")} added`, text: toldOf(receipt) })} />}
      {open === "recover" && (
        <Confirm title="Free what dead processes held?" action="Recover" isDanger={false} onClose={close} onConfirm={async () => {
          const done = await recover.mutateAsync(undefined);
          setDeed({ title: `${counted(done.recovered, "domain")} can be asked again`, text: `${counted(done.processes, "dead process", "dead processes")}; ${counted(done.files.length, "WARC file")} repaired and sealed; ${counted(done.orphanRecords, "record")} kept that will be fetched again.` });
        }}>
          <p>Domains that a process held when it died can be asked again at once, and its open WARC files are repaired and sealed. Nothing is lost; living processes are left alone.</p>
        </Confirm>
      )}
      {open === "clear" && stats.data && (
        <Confirm title={`Clear the frontier of run ${stats.data.executionId}?`} action={`Remove ${counted(stats.data.pending, "queued address", "queued addresses")}`} onClose={close} onConfirm={async (_, tell) => {
          const removed = await clear.mutateAsync({ execution: stats.data.executionId, onRemoved: (sofar) => tell(`${counted(sofar, "address is", "addresses are")} removed so far`) });
          setDeed({ title: `${counted(removed, "address was", "addresses were")} taken from the queue`, text: "What was captured stays. The next run of the source finds them again from its seeds and links." });
        }}>
          <p>{counted(stats.data.pending, "address is", "addresses are")} queued for {stats.data.sourceCode}. They will not be asked for in this run, and a crawl that runs ends. This cannot be undone.</p>
          <p>What was captured stays.</p>
        </Confirm>
      )}
    </>
  );
}
