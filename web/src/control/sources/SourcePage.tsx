import { Link, useNavigate } from "@tanstack/react-router";
import { CalendarPlus, Play } from "lucide-react";
import { useEffect, useState } from "react";
import { Operate } from "@/app/Operate";
import { Problem } from "@/app/Problem";
import { managedSourceRoute, newSourceRoute } from "@/app/crawlRoutes";
import { keep, readKept } from "@/app/kept";
import { Button } from "@/design/Button";
import { Dialog } from "@/design/Dialog";
import { Notice } from "@/design/Notice";
import { Tabs } from "@/design/Tabs";
import { Tag } from "@/design/Tag";
import { toldOf } from "../editions/planning";
import { useApplyPlan } from "../editions/useEditions";
import { useJobDeed, type Job } from "../jobs/useJobs";
import { WaitNotice } from "../jobs/Waits";
import { startOf } from "../jobs/words";
import { Moment } from "../live/Moment";
import { useCrawlNews } from "../overview/useOverview";
import { readSourceView } from "./asked";
import { contentOf, draftOf, EMPTY, mergedDraft, readDraft, readEdit, type Draft } from "./form";
import { scheduleText } from "./schedule";
import { SourceForm } from "./SourceForm";
import { useCrawlJob, useManagedSource, useSourceDeed, type Source } from "./useSources";
import { YamlView } from "./YamlView";
import { t } from "@/language/control/sources";
import { withParts } from "@/language/room";

const DRAFT = "new-source";

/** A source that is not there yet. */
export function NewSourcePage() {
  const { view, url } = readSourceView({ ...newSourceRoute.useSearch() });
  const navigate = useNavigate();
  // A session that ends leads away and back: what was written so far is still there then.
  const [found] = useState(() => (url ? null : readDraft(readKept(DRAFT, { inWindow: true }))));
  const [draft, setDraft] = useState<Draft>(found ?? { ...EMPTY, ...(url ? { seeds: url } : {}) });
  const change = (now: Draft) => { setDraft(now); keep(DRAFT, JSON.stringify(now), { inWindow: true }); };
  const forget = () => keep(DRAFT, null, { inWindow: true });
  useEffect(() => { document.title = `${t("newSource")} · Holdfast`; }, []);
  return (
    <>
      <p className="text-sm"><Link to="/control/sources">{t("sources")}</Link></p>
      <h1 className="text-2xl">{t("newSource")}</h1>
      <p className="mt-1 mb-5 text-soft">{t("newIntro")}</p>
      {found && draft !== EMPTY && <div className="mb-4"><Notice title={t("unsavedSource")}>{t("unsavedHow")} <Button onClick={() => { forget(); setDraft(EMPTY); }}>{t("startOver")}</Button></Notice></div>}
      <Tabs label={t("views")} value={view ?? "form"} onChange={(chosen) => void navigate({ to: "/control/sources/new", search: chosen === "yaml" ? { view: "yaml" } : {}, replace: true })} tabs={[
        { value: "form", label: t("form"), content: <SourceForm draft={draft} onChange={change} before={null} onSaved={(saved) => { forget(); void navigate({ to: "/control/sources/$id", params: { id: String(saved.id) } }); }} /> },
        { value: "yaml", label: "YAML", content: <YamlView content={contentOf(draft)} code="" onSaved={() => { forget(); void navigate({ to: "/control/sources" }); }} /> },
      ]} />
    </>
  );
}

/** A source that is there: looked at, changed, enabled, disabled, deleted. */
export function SourcePage() {
  const id = Number(managedSourceRoute.useParams().id);
  const { data: source, error, refetch } = useManagedSource(id);
  const news = useCrawlNews();
  const job = useCrawlJob(id, news);
  useEffect(() => { document.title = `${source?.name ?? t("source")} · Holdfast`; }, [source?.name]);
  if (error && !source) return <Problem problem={error} onAgain={() => void refetch()} />;
  // Without its job it is not known whether it runs, and a second one might be made.
  if (job.error && job.data === undefined) return <Problem problem={job.error} onAgain={() => void job.refetch()} />;
  if (!source || job.isPending) return <div className="min-h-96" aria-busy />;
  return <Loaded key={source.id} source={source} job={job.data ?? null} />;
}

function Loaded({ source, job }: { source: Source; job: Job | null }) {
  const { view } = readSourceView({ ...managedSourceRoute.useSearch() });
  const navigate = useNavigate();
  const now = draftOf(source);
  const name = `source-${source.id}`;
  // As with a new one: a session that ends loses nothing of what was being changed.
  const [found] = useState(() => readEdit(readKept(name, { inWindow: true })));
  const [draft, setDraft] = useState<Draft>(found ? mergedDraft(found.draft, found.before, now) : now);
  const [before, remember] = useState<Draft>(now);
  const forget = () => keep(name, null, { inWindow: true });
  const change = (written: Draft) => { setDraft(written); keep(name, JSON.stringify({ draft: written, before: now }), { inWindow: true }); };
  // The server has something new: the form takes it, and keeps what somebody is writing.
  if (JSON.stringify(now) !== JSON.stringify(before)) {
    remember(now);
    setDraft(mergedDraft(draft, before, now));
  }
  const isKept = found !== null && JSON.stringify(draft) !== JSON.stringify(now);
  return (
    <div className="space-y-5">
      <header>
        <p className="text-sm"><Link to="/control/sources">{t("sources")}</Link></p>
        <div className="flex flex-wrap items-center justify-between gap-3">
          <h1 className="min-w-0 text-2xl break-words">{source.name} <span className="text-soft">{source.code}</span></h1>
          <Tag tone={source.enabled ? "good" : "warn"}>{source.enabled ? t("enabled") : t("disabled")}</Tag>
        </div>
        <p className="text-soft">
          {job ? withParts(t(job.next_run_at ? "runsNext" : "runsOn"), { job: <Link to="/control/jobs/$id" params={{ id: String(job.id) }}>{t("job")}</Link>, schedule: scheduleText(job.schedule), time: <Moment at={job.next_run_at} relative /> }) : t("onlyByHand")}
          {" "}<Link to="/search" search={{ source: source.code }}>{t("searchCaptures")}</Link>
        </p>
      </header>
      <Operate><Deeds source={source} job={job} /></Operate>
      <WaitNotice run={job?.latest_execution} job={job ?? undefined} />
      {isKept && <Notice title={t("unsavedChanges")}>{t("unsavedChangesHow")} <Button onClick={() => { forget(); setDraft(now); }}>{t("discard")}</Button></Notice>}
      <Tabs label={t("views")} value={view ?? "form"} onChange={(chosen) => void navigate({ to: "/control/sources/$id", params: { id: String(source.id) }, search: chosen === "yaml" ? { view: "yaml" } : {}, replace: true })} tabs={[
        { value: "form", label: t("form"), content: <SourceForm draft={draft} onChange={change} before={source} onSaved={forget} /> },
        { value: "yaml", label: "YAML", content: <YamlView content={null} code={source.code} /> },
      ]} />
    </div>
  );
}

function Deeds({ source, job }: { source: Source; job: Job | null }) {
  const act = useSourceDeed(source);
  const start = useJobDeed();
  const plan = useApplyPlan();
  const year = new Date().getUTCFullYear() + 1;
  const deed = source.enabled ? startOf(job) : null;
  const navigate = useNavigate();
  const [isAsked, ask] = useState(false);
  return (
    <div className="space-y-3">
      <div className="flex flex-wrap gap-2">
        {/* It stays where it is: what stands beside it must not move below a finger that touches twice. */}
        {source.enabled && <Button kind="main" disabled={start.isPending || !deed} title={deed ? undefined : t("busy")} onClick={() => deed && start.mutate({ deed, job: job ?? ({ source_id: source.id } as Job) })}><Play aria-hidden className="size-4" />{t("runNow")}</Button>}
        {source.enabled ? <Button disabled={act.isPending} onClick={() => act.mutate("disable")}>{t("disable")}</Button> : <Button kind="main" disabled={act.isPending} onClick={() => act.mutate("enable")}>{t("enable")}</Button>}
        {source.enabled && <Button disabled={plan.isPending} onClick={() => plan.mutate({ apply: true, year, shards: false, sources: [source.code] })} aria-describedby="edition-hint"><CalendarPlus aria-hidden className="size-4" />{t("plan", { year: String(year) })}</Button>}
        <Button kind="danger" disabled={act.isPending} onClick={() => ask(true)}>{t("delete")}</Button>
      </div>
      {source.enabled && <p id="edition-hint" className="text-sm text-soft">{t("planHow", { year: String(year) })}</p>}
      {plan.data && <Notice tone={toldOf(plan.data).isGood ? "good" : "warn"} title={toldOf(plan.data).title}><Link to="/control/editions" search={{ source: source.code }}>{t("seeEditions")}</Link></Notice>}
      {plan.error ? <Problem problem={plan.error} /> : null}
      {start.isSuccess && <Notice tone="good" title={t("starts")}>{job && <Link to="/control/jobs/$id" params={{ id: String(job.id) }}>{t("watch")}</Link>}</Notice>}
      {start.error ? <Problem problem={start.error} /> : null}
      {act.isSuccess && <Notice tone="good" title={act.data} />}
      {act.error ? <Problem problem={act.error} /> : null}
      <Dialog isOpen={isAsked} onClose={() => ask(false)} title={t("deleteTitle", { name: source.name })} actions={
        <>
          <Button onClick={() => ask(false)}>{t("cancel")}</Button>
          <Button kind="danger" onClick={() => { ask(false); act.mutate("delete", { onSuccess: () => void navigate({ to: "/control/sources" }) }); }}>{t("deleteSource")}</Button>
        </>
      }>
        <p>{t("deleteHow")}</p>
      </Dialog>
    </div>
  );
}
