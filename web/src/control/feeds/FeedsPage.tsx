import { Link, useNavigate } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useState } from "react";
import { Operate } from "@/app/Operate";
import { Problem } from "@/app/Problem";
import { feedsRoute } from "@/app/crawlRoutes";
import { PageHead } from "@/control/page/PageHead";
import { withParts } from "@/language/room";
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
import { t } from "@/language/control/feeds";
import { t as common } from "@/language/control/common";

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
  const go = (change: Partial<AskedFeeds>) => void navigate({ to: "/control/feeds", search: readAskedFeeds({ ...asked, cursor: undefined, ...change }) });
  const undo = undoOf(act.variables);
  return (
    <>
      <PageHead title={t("feeds")} actions={<Operate><Button kind="main" onClick={() => add(true)}><Plus aria-hidden className="size-4" />{t("add")}</Button></Operate>}>{t("intro")}</PageHead>
      <div className="mb-4 grid items-end gap-3 sm:grid-cols-2 lg:grid-cols-4">
        <SelectField label={t("source")} value={asked.source ?? ""} onChange={(event) => go({ source: event.target.value || undefined })}>
          <option value="">{t("allSources")}</option>
          {sources?.map((source) => <option key={source.code} value={source.code}>{source.name}</option>)}
        </SelectField>
        <SelectField label={t("kind")} value={asked.kind ?? ""} onChange={(event) => go({ kind: (event.target.value || undefined) as AskedFeeds["kind"] })}>
          <option value="">{t("all")}</option><option value="feed">{t("kinds.feed")}</option><option value="sitemap">{t("kinds.sitemap")}</option>
        </SelectField>
        <SelectField label={t("state")} value={asked.disabled ?? ""} onChange={(event) => go({ disabled: (event.target.value || undefined) as AskedFeeds["disabled"] })}>
          <option value="">{t("all")}</option><option value="no">{t("polled")}</option><option value="yes">{t("off")}</option>
        </SelectField>
        {asked.source && <Operate><div className="flex flex-wrap gap-2"><Button disabled={act.isPending} onClick={() => act.mutate({ deed: "poll", source: asked.source ?? "" })}>{t("pollNow")}</Button><Button disabled={act.isPending} onClick={() => act.mutate({ deed: "discover", source: asked.source ?? "" })}>{t("lookFor")}</Button></div></Operate>}
      </div>
      <div className="mb-4 space-y-3">
        {act.isSuccess && <Notice tone="good" title={act.data} actions={undo && <Button onClick={() => act.mutate(undo)}>{common("undo")}</Button>} />}
        {act.error && !isAdding ? <Problem problem={act.error} /> : null}
        {error && !data ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      </div>
      <div aria-busy={isFetching} className="min-h-64">
        {data && <DataTable caption={t("feeds")} rows={data.items} keyOf={(feed) => feed.id} columns={[
          { head: t("feed"), cell: (feed) => <><span className="block break-all">{feed.url}</span><span className="text-sm text-soft">{t(`kind.${feed.kind}`)}, {t.of("origin", feed.origin)} · <Link to="/control/feeds" search={{ source: feed.source }}>{feed.source}</Link></span></> },
          { head: t("health"), cell: (feed) => <Health feed={feed} /> },
          { head: t("lastPoll"), cell: (feed) => <Moment at={feed.lastPolledAt} relative none={common("never")} /> },
          { head: t("next"), cell: (feed) => <Next at={feed.nextPollAt} /> },
          { head: t("items"), isNumber: true, cell: (feed) => feed.lastItemCount ?? "–" },
          { head: common("actions"), cell: (feed) => (
            <span className="flex flex-wrap justify-end gap-1 sm:justify-start">
              <Button kind="bare" aria-label={t("itemsOf", { url: feed.url })} onClick={() => look(feed)}>{t("items")}</Button>
              <Operate><Button kind="bare" disabled={act.isPending} aria-label={t(feed.state === "disabled" ? "enableOf" : "disableOf", { url: feed.url })} onClick={() => act.mutate({ deed: feed.state === "disabled" ? "enable" : "disable", feed })}>{t(feed.state === "disabled" ? "enable" : "disable")}</Button>
              <Button kind="bare" aria-label={t("deleteOf", { url: feed.url })} onClick={() => remove(feed)}>{t("delete")}</Button></Operate>
            </span>
          ) },
        ]} empty={asked.source || asked.kind || asked.disabled ? <Notice title={common("noMatches")}>{t(asked.source ? "noneOf" : "removeFilter")}</Notice> : <Notice title={t("none")}>{t("noneHow")}</Notice>} />}
      </div>
      {(data?.next || asked.cursor) && <nav aria-label={t("pieces")} className="mt-4 flex justify-center gap-3"><Button disabled={!asked.cursor} onClick={() => go({})}>{t("fromStart")}</Button><Button disabled={!data?.next} onClick={() => go({ cursor: data?.next ?? undefined })}>{t("next")}</Button></nav>}
      <AddFeed isOpen={isAdding} onClose={() => { add(false); if (act.isError) act.reset(); }} sources={sources ?? []} chosen={asked.source ?? ""} act={act} />
      <Dialog isOpen={removed !== null} onClose={() => remove(null)} title={t("deleteTitle")} actions={<><Button onClick={() => remove(null)}>{common("cancel")}</Button><Button kind="danger" onClick={() => { if (removed) act.mutate({ deed: "remove", feed: removed }); remove(null); }}>{t("deleteIt")}</Button></>}>
        <p className="break-all">{removed?.url}</p>
        <p className="mt-2">{t("deleteHow", { source: removed?.source ?? "" })}</p>
      </Dialog>
      <Items feed={looked} onClose={() => look(null)} />
    </>
  );
}

function Next({ at }: { at: string | null }) {
  const now = useNow();
  if (at && Date.parse(at) <= now) return <>{t("whenFree")}</>;
  return <Moment at={at} relative />;
}

function Health({ feed }: { feed: Feed }) {
  const [said, tone] = stateOf(feed);
  const trouble = troubleOf(feed);
  return <><Tag tone={tone}>{said}</Tag>{trouble && <span className="mt-1 block text-sm">{trouble}</span>}{feed.error && <span className="block text-sm break-words text-soft" lang="en">{feed.error}</span>}</>;
}

function Items({ feed, onClose }: { feed: Feed | null; onClose: () => void }) {
  const { data, error, refetch } = useFeed(feed?.id ?? null);
  return (
    <Dialog isOpen={feed !== null} onClose={onClose} title={t("lastItems")} actions={<Button onClick={onClose}>{common("close")}</Button>}>
      <p className="mb-3 text-sm break-all text-soft">{feed?.url}</p>
      {error ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      {feed && !data && !error && <p role="status" className="text-soft">{common("loading")}</p>}
      {data && data.items.length === 0 && <p>{t("noItems")}</p>}
      <ul className="divide-y divide-line">{data?.items.map((item) => <li key={item.url} className="py-1.5"><span className="block text-sm break-all">{item.url}</span><span className="text-sm text-soft">{withParts(t(item.executionId ? "foundTaken" : "found"), { time: <Moment at={item.foundAt} relative />, run: <Link to="/control/executions/$id" params={{ id: String(item.executionId) }}>{t("run", { id: String(item.executionId) })}</Link> })}</span></li>)}</ul>
    </Dialog>
  );
}
