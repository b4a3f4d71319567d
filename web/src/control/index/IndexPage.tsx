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
import { bytes, counted } from "@/control/charts/format";
import { Button } from "@/design/Button";
import { Card, Figure } from "@/design/Card";
import { DataTable } from "@/design/DataTable";
import { Tag } from "@/design/Tag";
import { StartWork, type Work } from "./StartWork";
import { useBrokenFiles, useIndexState, type IndexOverview } from "./useIndex";

/** What of the archive can be found and what not yet, and whether its files are sound. */
export function IndexPage() {
  const { data, error, refetch } = useIndexState();
  const [work, setWork] = useState<Work | null>(null);
  const [deed, setDeed] = useState<Deed | null>(null);
  return (
    <>
      <PageHead title="Index and verification" actions={
        <Operate>
          <Button kind="main" onClick={() => setWork("verify")}>Verify files</Button>
          <Button onClick={() => setWork("rebuild_index")}>Read files again</Button>
          <Button onClick={() => setWork("rebuild_search")}>Rebuild search</Button>
        </Operate>
      }>What of the archive can be found and what not yet, and whether the files are as they were sealed. All of it can be made anew from the WARC files.</PageHead>
      <Done deed={deed} onClose={() => setDeed(null)} />
      {error ? <div className="mb-4"><Problem problem={error} onAgain={() => void refetch()} /></div> : null}
      <dl className="mb-4 grid min-h-24 grid-cols-2 gap-3 sm:grid-cols-4">
        <Figure label="Files indexed" value={count(data, "indexed")} />
        <Figure label="Waiting" value={count(data, "pending")} />
        <Figure label="Being read" value={count(data, "running")} />
        <Figure label="Could not be read" value={count(data, "failed")} />
      </dl>
      <div className="space-y-4">
        {data && data.reading.length > 0 && <Card title="Being read now"><Reading found={data} /></Card>}
        <Card title="Search index">{data ? <SearchState found={data} /> : <p role="status" className="min-h-16 text-soft">Loading…</p>}</Card>
        {data && (data.files["failed"] ?? 0) > 0 && <Card title="Files that could not be read"><Broken /></Card>}
        <Card title="Verifications and rebuilds"><OperationList kinds={["verify", "rebuild_index", "rebuild_search"]} empty="Nothing was verified or rebuilt yet. A verification reads every file and compares it with the digest from its sealing." /></Card>
      </div>
      {work && <StartWork work={work} onClose={() => setWork(null)} onDone={setDeed} />}
    </>
  );
}

function count(data: IndexOverview | undefined, state: string): string {
  return data ? (data.files[state] ?? 0).toLocaleString("en") : "–";
}

function Reading({ found }: { found: IndexOverview }) {
  return (
    <ul className="space-y-3">
      {found.reading.map((one) => (
        <li key={one.file}>
          <p className="break-all">{one.name} <span className="text-sm text-soft">of {one.source}, {one.phase}, {counted(one.records, "record")}, {counted(one.pages, "page")}</span></p>
          <Meter label={`Reading ${one.name}`} done={one.bytesDone} total={one.bytesTotal} text={`${bytes(one.bytesDone)} of ${bytes(one.bytesTotal)}`} />
        </li>
      ))}
    </ul>
  );
}

function SearchState({ found }: { found: IndexOverview }) {
  const { search } = found;
  return (
    <Facts facts={[
      ["State", search.exists ? <Tag key="is" tone={search.waiting ? "warn" : "good"}>{search.waiting ? "behind" : "up to date"}</Tag> : <Tag key="no">not made yet</Tag>],
      ["Changes it has not taken in", search.waiting ? <span key="waiting">{search.waiting.toLocaleString("en")}{search.waiting >= 10_000 ? " or more" : ""}{search.oldestWaitingAt && <>, the oldest since <Moment at={search.oldestWaitingAt} /></>}</span> : "none"],
      search.generation ? ["Generation", <code key="generation" className="text-sm break-all">{search.generation}</code>] : null,
      ["Rebuilt", <Moment key="rebuilt" at={search.lastRebuild?.finishedAt} none="never" />],
    ]} />
  );
}

function Broken() {
  const list = useBrokenFiles();
  if (list.error) return <Problem problem={list.error} onAgain={() => void list.refetch()} />;
  return (
    <>
      <DataTable caption="Files that could not be read" rows={list.rows ?? []} keyOf={(row) => row.file} empty={<p className="min-h-16 text-soft">Asking…</p>} columns={[
        { head: "File", cell: (row) => <span className="break-all">{row.name}</span> },
        { head: "Source", cell: (row) => row.source },
        { head: "Execution", isNumber: true, cell: (row) => row.executionId },
        { head: "Why", cell: (row) => <span className="break-words">{row.error ?? "not told"}</span> },
      ]} />
      {list.hasNextPage && <ShowMore list={list} count={list.rows?.length ?? 0} noun="file" />}
    </>
  );
}
