import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Operate } from "@/app/Operate";
import { Problem } from "@/app/Problem";
import { ApiProblem } from "@/api/problem";
import { frontierRoute } from "@/app/careRoutes";
import { Confirm } from "@/control/page/Confirm";
import { Done, type Deed } from "@/control/page/Done";
import { PageHead } from "@/control/page/PageHead";
import { count } from "@/control/charts/format";
import { Button, buttonClass } from "@/design/Button";
import { Figure } from "@/design/Card";
import { Notice } from "@/design/Notice";
import { AddUrls, toldOf } from "./AddUrls";
import { Filters } from "./Filters";
import { UrlList } from "./UrlList";
import { readAskedFrontier, type AskedFrontier } from "./asked";
import { useClearFrontier, useFrontierStats, useRecover } from "./useFrontier";
import { stateWord } from "@/control/jobs/words";
import { t } from "@/language/control/frontier";
import { withParts } from "@/language/room";

const figure = (value: number | undefined) => (value === undefined ? "–" : count(value));

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
      <PageHead title={t("frontier")} actions={
        <Operate>
          <Button kind="main" onClick={() => setOpen("add")}>{t("add")}</Button>
          <Button onClick={() => setOpen("recover")}>{t("recover")}</Button>
          <Button kind="danger" disabled={!stats.data?.pending} onClick={() => setOpen("clear")}>{t("clear")}</Button>
        </Operate>
      }>
        {t("intro")}
      </PageHead>
      <p className="mb-4 min-h-6">
        {stats.data && withParts(t("shownRun", { source: stats.data.sourceCode, state: stateWord(stats.data.state) }), { run: <Link to="/control/executions/$id" params={{ id: String(stats.data.executionId) }}>{t("runName", { id: String(stats.data.executionId) })}</Link> })}
      </p>
      <Done deed={deed} onClose={() => setDeed(null)} />
      {isEmpty ? (
        <Notice title={t("none")} actions={<Link to="/control/sources" className={buttonClass("main")}>{t("toSources")}</Link>}>
          {t("noneHow")}
        </Notice>
      ) : (
        <>
          {stats.error ? <div className="mb-4"><Problem problem={stats.error} onAgain={() => void stats.refetch()} /></div> : null}
          <dl className="mb-5 grid min-h-24 grid-cols-2 gap-3 sm:grid-cols-3 lg:grid-cols-6">
            <Figure label={t("queued")} value={figure(stats.data?.pending)} />
            <Figure label={t("active")} value={figure(stats.data?.inProgress)} note={t("onePer")} />
            <Figure label={t("done")} value={figure(stats.data?.completed)} />
            <Figure label={t("failed")} value={figure(stats.data?.failed)} />
            <Figure label={t("ruledOut")} value={figure(stats.data?.ruledOut)} />
            <Figure label={t("domains")} value={figure(stats.data?.totalDomains)} note={stats.data?.pausedDomains ? t("pausedCount", { count: stats.data.pausedDomains }) : undefined} />
          </dl>
          {stats.data && stats.data.waiting > 0 && <div className="mb-4"><Notice title={t("waiting", { count: stats.data.waiting })}>{t("waitingHow")}</Notice></div>}
          <Filters asked={asked} onChange={go} />
          <UrlList asked={asked} />
        </>
      )}
      {open === "add" && <AddUrls onClose={close} onDone={(receipt) => setDeed({ title: t("added", { count: receipt.added }), text: toldOf(receipt) })} />}
      {open === "recover" && (
        <Confirm title={t("recoverTitle")} action={t("recover")} isDanger={false} onClose={close} onConfirm={async () => {
          const done = await recover.mutateAsync(undefined);
          setDeed({ title: t("recovered", { count: done.recovered }), text: t("recoveredHow", { processes: done.processes, files: done.files.length, records: done.orphanRecords }) });
        }}>
          <p>{t("recoverHow")}</p>
        </Confirm>
      )}
      {open === "clear" && stats.data && (
        <Confirm title={t("clearTitle", { id: String(stats.data.executionId) })} action={t("clearDo", { count: stats.data.pending })} onClose={close} onConfirm={async (_, tell) => {
          const removed = await clear.mutateAsync({ execution: stats.data.executionId, onRemoved: (sofar) => tell(t("removing", { count: sofar })) });
          setDeed({ title: t("removed", { count: removed }), text: t("removedHow") });
        }}>
          <p>{t("clearHow", { count: stats.data.pending, source: stats.data.sourceCode })}</p>
          <p>{t("stays")}</p>
        </Confirm>
      )}
    </>
  );
}
