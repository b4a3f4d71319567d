import { Link, useNavigate } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useEffect, useState } from "react";
import { Operate } from "@/app/Operate";
import { Problem } from "@/app/Problem";
import { feedsRoute } from "@/app/crawlRoutes";
import { Button } from "@/design/Button";
import { DataTable } from "@/design/DataTable";
import { Dialog } from "@/design/Dialog";
import { SelectField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { Moment } from "../live/Moment";
import { useNow } from "../live/useNow";
import { useSourceChoices } from "../sources/useSources";
import { AddFeed } from "./AddFeed";
import { readAskedFeeds, type AskedFeeds } from "./asked";
import { stateOf, troubleOf } from "./health";
import { undoOf, useFeed, useFeedDeed, useFeeds, type Feed } from "./useFeeds";

/** What is asked for news, and how each does. */
export function FeedsPage() {
  const asked = readAskedFeeds({ ...feedsRoute.useSearch() });
  const navigate = useNavigate();
  const { data, error, refetch, isFetching } = useFeeds(asked);
  const sources = useSourceChoices();
  const act = useFeedDeed();
  const [isAdding, add] = useState(false);
  const [removed, remove] = useState<Feed | null>(null);
  const [looked, look] = useState<Feed | null>(null);
  useEffect(() => { document.title = "Feeds · Holdfast"; }, []);
  const go = (change: Partial<AskedFeeds>) => void navigate({ to: "/control/feeds", search: readAskedFeeds({ ...asked, cursor: undefined, ...change }) });
  const undo = undoOf(act.variables);
  return (
    <>
      <header className="mb-4 flex flex-wrap items-center justify-between gap-3">
        <h1 className="text-2xl">Feeds</h1>
        <Operate><Button kind="main" onClick={() => add(true)}><Plus aria-hidden className="size-4" />Add a feed</Button></Operate>
      </header>
      <p className="mb-4 text-soft">Feeds and sitemaps are asked for what is new between crawls, and what they name is captured. Sources find their own where that is switched on.</p>
      <div className="mb-4 grid items-end gap-3 sm:grid-cols-2 lg:grid-cols-4">
        <SelectField label="Source" value={asked.source ?? ""} onChange={(event) => go({ source: event.target.value || undefined })}>
          <option value="">all</option>
          {sources?.map((source) => <option key={source.code} value={source.code}>{source.name}</option>)}
        </SelectField>
        <SelectField label="Kind" value={asked.kind ?? ""} onChange={(event) => go({ kind: (event.target.value || undefined) as AskedFeeds["kind"] })}>
          <option value="">all</option><option value="feed">feeds</option><option value="sitemap">sitemaps</option>
        </SelectField>
        <SelectField label="State" value={asked.disabled ?? ""} onChange={(event) => go({ disabled: (event.target.value || undefined) as AskedFeeds["disabled"] })}>
          <option value="">all</option><option value="no">polled</option><option value="yes">disabled</option>
        </SelectField>
        {asked.source && <Operate><div className="flex flex-wrap gap-2"><Button disabled={act.isPending} onClick={() => act.mutate({ deed: "poll", source: asked.source ?? "" })}>Poll now</Button><Button disabled={act.isPending} onClick={() => act.mutate({ deed: "discover", source: asked.source ?? "" })}>Look for feeds</Button></div></Operate>}
      </div>
      <div className="mb-4 space-y-3">
        {act.isSuccess && <Notice tone="good" title={act.data} actions={undo && <Button onClick={() => act.mutate(undo)}>Undo</Button>} />}
        {act.error && !isAdding ? <Problem problem={act.error} /> : null}
        {error && !data ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      </div>
      <div aria-busy={isFetching} className="min-h-64">
        {data && <DataTable caption="Feeds" rows={data.items} keyOf={(feed) => feed.id} columns={[
          { head: "Feed", cell: (feed) => <><span className="block break-all">{feed.url}</span><span className="text-sm text-soft">{feed.kind}, {feed.origin} · <Link to="/control/feeds" search={{ source: feed.source }}>{feed.source}</Link></span></> },
          { head: "Health", cell: (feed) => <Health feed={feed} /> },
          { head: "Polled", cell: (feed) => <Moment at={feed.lastPolledAt} relative none="never" /> },
          { head: "Next", cell: (feed) => <Next at={feed.nextPollAt} /> },
          { head: "Items", isNumber: true, cell: (feed) => feed.lastItemCount ?? "–" },
          { head: "Actions", cell: (feed) => (
            <span className="flex flex-wrap justify-end gap-1 sm:justify-start">
              <Button kind="bare" onClick={() => look(feed)}>Items<span className="sr-only"> of {feed.url}</span></Button>
              <Operate><Button kind="bare" disabled={act.isPending} onClick={() => act.mutate({ deed: feed.state === "disabled" ? "enable" : "disable", feed })}>{feed.state === "disabled" ? "Enable" : "Disable"}<span className="sr-only"> {feed.url}</span></Button>
              <Button kind="bare" onClick={() => remove(feed)}>Delete<span className="sr-only"> {feed.url}</span></Button></Operate>
            </span>
          ) },
        ]} empty={asked.source || asked.kind || asked.disabled ? <Notice title="No matches.">{asked.source ? "Look for its feeds, or add one by its address." : "Remove a filter."}</Notice> : <Notice title="No feed is known.">Switch feeds on in a source and its feeds are found; or add one by its address.</Notice>} />}
      </div>
      {(data?.next || asked.cursor) && <nav aria-label="Pieces of the list" className="mt-4 flex justify-center gap-3"><Button disabled={!asked.cursor} onClick={() => go({})}>From the beginning</Button><Button disabled={!data?.next} onClick={() => go({ cursor: data?.next ?? undefined })}>Next</Button></nav>}
      <AddFeed isOpen={isAdding} onClose={() => { add(false); if (act.isError) act.reset(); }} sources={sources ?? []} chosen={asked.source ?? ""} act={act} />
      <Dialog isOpen={removed !== null} onClose={() => remove(null)} title="Delete this feed?" actions={<><Button onClick={() => remove(null)}>Cancel</Button><Button kind="danger" onClick={() => { if (removed) act.mutate({ deed: "remove", feed: removed }); remove(null); }}>Delete the feed</Button></>}>
        <p className="break-all">{removed?.url}</p>
        <p className="mt-2">It is taken from {removed?.source}, and comes back if it is found again. One that is not wanted is better disabled. What was captured through it stays.</p>
      </Dialog>
      <Items feed={looked} onClose={() => look(null)} />
    </>
  );
}

function Next({ at }: { at: string | null }) {
  const now = useNow();
  if (at && Date.parse(at) <= now) return <>when a worker is free</>;
  return <Moment at={at} relative />;
}

function Health({ feed }: { feed: Feed }) {
  const [said, tone] = stateOf(feed);
  const trouble = troubleOf(feed);
  return <><Tag tone={tone}>{said}</Tag>{trouble && <span className="mt-1 block text-sm">{trouble}</span>}{feed.error && <span className="block text-sm break-words text-soft">{feed.error}</span>}</>;
}

function Items({ feed, onClose }: { feed: Feed | null; onClose: () => void }) {
  const { data, error, refetch } = useFeed(feed?.id ?? null);
  return (
    <Dialog isOpen={feed !== null} onClose={onClose} title="What it named last" actions={<Button onClick={onClose}>Close</Button>}>
      <p className="mb-3 text-sm break-all text-soft">{feed?.url}</p>
      {error ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      {feed && !data && !error && <p role="status" className="text-soft">Looking…</p>}
      {data && data.items.length === 0 && <p>It has named nothing yet.</p>}
      <ul className="divide-y divide-line">{data?.items.map((item) => <li key={item.url} className="py-1.5"><span className="block text-sm break-all">{item.url}</span><span className="text-sm text-soft">found <Moment at={item.foundAt} relative />{item.executionId ? <>, taken by <Link to="/control/executions/$id" params={{ id: String(item.executionId) }}>run #{item.executionId}</Link></> : ", not taken yet"}</span></li>)}</ul>
    </Dialog>
  );
}
