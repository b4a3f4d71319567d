import { useState } from "react";
import { Operate } from "@/app/Operate";
import { Problem } from "@/app/Problem";
import { OperationList } from "@/control/operations/OperationRow";
import { Done, type Deed } from "@/control/page/Done";
import { Facts } from "@/control/page/Facts";
import { Meter } from "@/control/page/Meter";
import { Moment } from "@/control/live/Moment";
import { PageHead } from "@/control/page/PageHead";
import { ShowMore } from "@/control/page/ShowMore";
import { bytes, count as number } from "@/control/charts/format";
import { Button } from "@/design/Button";
import { Card, Figure } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { Tag } from "@/design/Tag";
import { t as operations } from "@/language/control/operations";
import { withParts } from "@/language/room";
import { StartWork, type Work } from "./StartWork";
import { useBrokenFiles, useIndexState, type IndexOverview } from "./useIndex";
import { t } from "@/language/control/index";
import { t as common } from "@/language/control/common";

/** What of the archive can be found and what not yet, and whether its files are sound. */
export function IndexPage() {
  const { data, error, refetch } = useIndexState();
  const [work, setWork] = useState<Work | null>(null);
  const [deed, setDeed] = useState<Deed | null>(null);
  return (
    <>
      <PageHead title={t("title")} actions={
        <Operate>
          <Button kind="main" onClick={() => setWork("verify")}>{t("verifyFiles")}</Button>
          <Button onClick={() => setWork("rebuild_index")}>{t("readAgain")}</Button>
          <Button onClick={() => setWork("rebuild_search")}>{t("rebuildSearch")}</Button>
        </Operate>
      }>{t("intro")}</PageHead>
      <Done deed={deed} onClose={() => setDeed(null)} />
      {error ? <div className="mb-4"><Problem problem={error} onAgain={() => void refetch()} /></div> : null}
      <dl className="mb-4 grid min-h-24 grid-cols-2 gap-3 sm:grid-cols-4">
        <Figure label={t("indexed")} value={count(data, "indexed")} />
        <Figure label={t("waiting")} value={count(data, "pending")} />
        <Figure label={t("beingRead")} value={count(data, "running")} />
        <Figure label={t("notRead")} value={count(data, "failed")} />
      </dl>
      <div className="space-y-4">
        {data && data.reading.length > 0 && <Card title={t("readNow")}><Reading found={data} /></Card>}
        <Card title={t("searchIndex")}>{data ? <SearchState found={data} /> : <p role="status" className="min-h-16 text-soft">{common("loading")}</p>}</Card>
        {data && (data.files["failed"] ?? 0) > 0 && <Card title={t("broken")}><Broken /></Card>}
        <Card title={t("works")}><OperationList kinds={["verify", "rebuild_index", "rebuild_search"]} empty={t("noWorks")} /></Card>
      </div>
      {work && <StartWork work={work} onClose={() => setWork(null)} onDone={setDeed} />}
    </>
  );
}

function count(data: IndexOverview | undefined, state: string): string {
  return data ? number(data.files[state] ?? 0) : "–";
}

function Reading({ found }: { found: IndexOverview }) {
  return (
    <ul className="space-y-3">
      {found.reading.map((one) => (
        <li key={one.file}>
          <p className="break-all">{one.name} <span className="text-sm text-soft">{t("reading", { source: one.source, phase: operations.of("phase", one.phase), records: t("records", { count: one.records }), pages: t("pages", { count: one.pages }) })}</span></p>
          <Meter label={t("readingOf", { name: one.name })} done={one.bytesDone} total={one.bytesTotal} text={t("ofSize", { done: bytes(one.bytesDone), total: bytes(one.bytesTotal) })} />
        </li>
      ))}
    </ul>
  );
}

function SearchState({ found }: { found: IndexOverview }) {
  const { search } = found;
  return (
    <Facts facts={[
      [t("state"), search.exists ? <Tag key="is" tone={search.waiting ? "warn" : "good"}>{search.waiting ? t("behind") : t("upToDate")}</Tag> : <Tag key="no">{t("notMade")}</Tag>],
      [t("changesWaiting"), search.waiting ? <span key="waiting"><Waiting number={search.waiting} since={search.oldestWaitingAt} /></span> : t("noChanges")],
      search.generation ? [t("generation"), <code key="generation" className="text-sm break-all">{search.generation}</code>] : null,
      [t("rebuilt"), <Moment key="rebuilt" at={search.lastRebuild?.finishedAt} none={common("never")} />],
    ]} />
  );
}

function Waiting({ number: waiting, since }: { number: number; since: string | null }) {
  const amount = waiting >= 10_000 ? t("orMore", { number: waiting }) : number(waiting);
  return <>{since ? withParts(t("oldest", { number: amount }), { time: <Moment at={since} /> }) : amount}</>;
}

function Broken() {
  const list = useBrokenFiles();
  if (list.error) return <Problem problem={list.error} onAgain={() => void list.refetch()} />;
  return (
    <>
      <DataTable caption={t("broken")} rows={list.rows ?? []} keyOf={(row) => row.file} empty={<p className="min-h-16 text-soft">{common("loading")}</p>} columns={[
        { head: t("file"), cell: (row) => <span className="break-all">{row.name}</span> },
        { head: t("source"), cell: (row) => row.source },
        { head: t("run"), isNumber: true, cell: (row) => row.executionId },
        { head: t("why"), cell: (row) => <span className="break-words">{row.error ? <span lang="en">{row.error}</span> : t("unknown")}</span> },
      ]} />
      {list.hasNextPage && <ShowMore list={list} count={list.rows?.length ?? 0} noun="file" />}
    </>
  );
}
