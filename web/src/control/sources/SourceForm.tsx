import { Upload } from "lucide-react";
import { useState, type FormEvent } from "react";
import { ApiProblem } from "@/api/problem";
import { Problem } from "@/app/Problem";
import { useMay } from "@/app/useSession";
import { Button } from "@/design/Button";
import { Card } from "@/design/Card";
import { SelectField, TextArea, TextField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { useSettled } from "../live/useSettled";
import { useWrongField } from "../page/useWrongField";
import { Check } from "../page/Check";
import { linesOf } from "./fields";
import { problemAt } from "./fields";
import { changesOf, contentOf, draftOf, labelOf, SCOPES, type Draft } from "./form";
import { ScheduleFields } from "./ScheduleFields";
import { NextRuns, SourcePreview } from "./SourcePreview";
import { useExcludePresets, usePreview, useSaveSource, type Source } from "./useSources";
import { t } from "@/language/control/sources";

interface Shown {
  draft: Draft;
  onChange: (draft: Draft) => void;
  /** The source as it is kept; null for a new one. */
  before: Source | null;
  onSaved?: (source: Source) => void;
}

/** A source, question by question, with a preview beside it. A wrong field is marked while it is written. */
export function SourceForm({ draft, onChange, before, onSaved }: Shown) {
  const save = useSaveSource(before?.id ?? null);
  const set = (change: Partial<Draft>) => { onChange({ ...draft, ...change }); if (save.isError) save.reset(); };
  const mayOperate = useMay("operate");
  const presets = useExcludePresets();
  const form = useWrongField(save.error);
  // Addresses of the real site and typed ones, which the rules of the form are tried on.
  const [samples, sample] = useState<string[]>([]);
  const seeds = linesOf(draft.seeds);
  const content = contentOf(draft, before ?? undefined);
  const preview = usePreview(useSettled(!mayOperate || seeds.length === 0 ? null : { source: content, urls: [...new Set([...samples, ...seeds])].slice(0, 100) }, 400));
  const [suggested, suggest] = useState("");
  if (preview.data && !draft.code && preview.data.code !== suggested) suggest(preview.data.code);
  const problem = save.error instanceof ApiProblem ? save.error : !save.error && preview.error instanceof ApiProblem ? preview.error : null;
  const at = (...fields: string[]) => problemAt(problem, ...fields);
  const wrong = labelOf(problem);
  const isFixed = before?.has_run ?? false;
  function send(event: FormEvent) {
    event.preventDefault();
    save.mutate(before ? changesOf(content, contentOf(draftOf(before), before)) : content, { onSuccess: (saved) => onSaved?.(saved.source) });
  }
  return (
    <div className="grid items-start gap-5 xl:grid-cols-[minmax(0,1fr)_24rem]">
      <form ref={form} onSubmit={send} noValidate className="min-w-0"><fieldset disabled={!mayOperate} className="min-w-0 space-y-5">
        <Card title={t("start")}>
          <div className="space-y-4">
            <TextArea label={t("seeds")} rows={5} value={draft.seeds} spellCheck={false} onChange={(event) => set({ seeds: event.target.value })} problem={at("seeds", "base_url")} hint={t("seedsHint", { count: seeds.length })} />
            <SeedFile onRead={(text) => set({ seeds: [...seeds, ...linesOf(text)].join("\n") })} />
          </div>
        </Card>
        <Card title={t("name")}>
          <div className="grid gap-4 sm:grid-cols-2">
            <TextField label={t("name")} value={draft.name} maxLength={200} onChange={(event) => set({ name: event.target.value })} problem={at("name")} hint={t("nameHint")} />
            <TextField label={t("id")} value={draft.code || suggested} maxLength={40} readOnly={isFixed} spellCheck={false} onChange={(event) => set({ code: event.target.value })} problem={at("code")} hint={isFixed ? t("idFixed") : t("idHint")} />
            <div className="sm:col-span-2"><TextArea label={t("description")} rows={2} maxLength={4000} value={draft.description} onChange={(event) => set({ description: event.target.value })} problem={at("description")} /></div>
            <SelectField label={t("visible")} value={draft.visibility} onChange={(event) => set({ visibility: event.target.value as Draft["visibility"] })} problem={at("visibility")} hint={t("visibleHint")}>
              <option value="public">{t("everybody")}</option>
              <option value="members">{t("signedIn")}</option>
            </SelectField>
          </div>
        </Card>
        <Card title={t("scope")}>
          <div className="grid gap-4 sm:grid-cols-2">
            <div className="sm:col-span-2">
              <SelectField label={t("scope")} value={draft.scope} onChange={(event) => set({ scope: event.target.value })} problem={at("scope")}>
                {SCOPES.map((scope) => <option key={scope} value={scope}>{t(`scope.${scope}`)}</option>)}
              </SelectField>
            </div>
            <TextArea label={t("include")} rows={3} spellCheck={false} className="font-mono text-sm" value={draft.include} onChange={(event) => set({ include: event.target.value })} problem={at("include")} hint={t("includeHint")} />
            <TextArea label={t("exclude")} rows={3} spellCheck={false} className="font-mono text-sm" value={draft.exclude} onChange={(event) => set({ exclude: event.target.value })} problem={at("exclude")} hint={t("excludeHint")} />
            <SelectField label={t("preset")} value="" onChange={(event) => set({ exclude: [...new Set([...linesOf(draft.exclude), `preset:${event.target.value}`])].join("\n") })} hint={t("presetHint")}>
              <option value="" disabled>{t("choose")}</option>
              {Object.entries(presets ?? {}).map(([name, rule]) => <option key={name} value={name} title={rule}>{name}</option>)}
            </SelectField>
            <TextField label={t("depth")} type="number" min={-1} value={draft.maxDepth} onChange={(event) => set({ maxDepth: event.target.value })} problem={at("max_depth")} hint={t("depthHint")} />
            <TextField label={t("limit")} type="number" min={1} value={draft.maxPages} placeholder={t("noLimit")} onChange={(event) => set({ maxPages: event.target.value })} problem={at("max_pages")} />
            <Check label={t("sitemaps")} value={draft.sitemaps} onChange={(sitemaps) => set({ sitemaps })} />
            <Check label={t("requisites")} value={draft.requisites} onChange={(requisites) => set({ requisites })} />
            <Check label={t("feeds")} value={draft.feeds} onChange={(feeds) => set({ feeds })} />
          </div>
        </Card>
        <Card title={t("speed")}>
          <div className="grid gap-4 sm:grid-cols-2">
            <TextField label={t("delay")} type="number" min={0} step="0.1" value={draft.delay} placeholder={t("delayDefault")} onChange={(event) => set({ delay: event.target.value })} problem={at("delay_s")} hint={t("delayHint")} />
            <SelectField label={t("robots")} value={draft.robots} onChange={(event) => set({ robots: event.target.value as Draft["robots"] })} problem={at("robots")}>
              <option value="obey">{t("obey")}</option>
              <option value="ignore">{t("ignore")}</option>
            </SelectField>
            {draft.robots === "ignore" && <div className="sm:col-span-2"><TextField label={t("reason")} value={draft.robotsReason} maxLength={500} onChange={(event) => set({ robotsReason: event.target.value })} problem={at("robots_reason")} hint={t("reasonHint")} /></div>}
          </div>
        </Card>
        <Card title={t("schedule")}><div id="schedule" className="scroll-mt-20"><ScheduleFields when={draft} onChange={set} problem={at("schedule")} /><NextRuns draft={draft} preview={preview.error ? undefined : preview.data} /></div></Card>
        {save.error && !wrong ? <Problem problem={save.error} /> : null}
        {save.error && wrong ? <Notice tone="bad" title={t("notSaved")}>{t("correctAgain", { field: wrong })}</Notice> : null}
        {save.isSuccess && <Notice tone="good" title={save.data.said} />}
        {mayOperate && <Button kind="main" type="submit" disabled={save.isPending}>{before ? t("save") : t("create")}</Button>}
      </fieldset></form>
      {mayOperate && <SourcePreview draft={draft} config={content["config"]} preview={preview.error ? undefined : preview.data} wrong={wrong} problem={problem} onSample={sample} />}
    </div>
  );
}

function SeedFile({ onRead }: { onRead: (text: string) => void }) {
  return (
    <label className="inline-flex min-h-10 cursor-pointer items-center gap-2 rounded-part border border-edge px-3.5 py-1.5 font-semibold focus-within:outline-3 focus-within:outline-accent hover:bg-sunk">
      <Upload aria-hidden className="size-4" />{t("seedFile")}
      <input type="file" accept=".txt,.csv,text/plain,text/csv" className="sr-only" onChange={async (event) => {
        const file = event.target.files?.[0];
        if (file) onRead(await file.text());
        event.target.value = "";
      }} />
    </label>
  );
}
