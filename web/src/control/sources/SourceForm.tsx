import { Upload } from "lucide-react";
import type { FormEvent } from "react";
import { ApiProblem } from "@/api/problem";
import { Problem } from "@/app/Problem";
import { Button } from "@/design/Button";
import { Card } from "@/design/Card";
import { SelectField, TextArea, TextField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { counted } from "../charts/format";
import { useWrongField } from "../page/useWrongField";
import { linesOf } from "./fields";
import { codeOf, contentOf, problemAt, SCOPES, type Draft } from "./form";
import { SourcePreview } from "./SourcePreview";
import { useExcludePresets, useSaveSource, type Source } from "./useSources";

interface Shown {
  draft: Draft;
  onChange: (draft: Draft) => void;
  /** The source as it is kept; null for a new one. */
  before: Source | null;
  onSaved?: (source: Source) => void;
}

/** A source, question by question; what it would do stands beside it as it is written. */
export function SourceForm({ draft, onChange, before, onSaved }: Shown) {
  const save = useSaveSource(before?.id ?? null);
  const set = (change: Partial<Draft>) => { onChange({ ...draft, ...change }); if (save.isError) save.reset(); };
  const presets = useExcludePresets();
  const form = useWrongField(save.error);
  const problem = save.error instanceof ApiProblem ? save.error : null;
  const at = (...fields: string[]) => problemAt(problem, ...fields);
  const every = draft.every.trim() === "" ? null : Number(draft.every);
  function send(event: FormEvent) {
    event.preventDefault();
    save.mutate({ source: contentOf(draft, before ?? undefined), interval: every, unit: draft.unit, adapts: draft.adapts }, { onSuccess: (saved) => onSaved?.(saved.source) });
  }
  return (
    <div className="grid items-start gap-5 xl:grid-cols-[minmax(0,1fr)_24rem]">
      <form ref={form} onSubmit={send} noValidate className="min-w-0 space-y-5">
        <Card title="Where it begins">
          <div className="space-y-4">
            <TextArea label="Seeds" rows={5} value={draft.seeds} spellCheck={false} onChange={(event) => set({ seeds: event.target.value })} problem={at("seeds", "base_url")} hint={`One address on each line; ${counted(linesOf(draft.seeds).length, "seed")} so far.`} />
            <SeedFile onRead={(text) => set({ seeds: [...linesOf(draft.seeds), ...linesOf(text)].join("\n") })} />
          </div>
        </Card>
        <Card title="What it is called">
          <div className="grid gap-4 sm:grid-cols-2">
            <TextField label="Name" value={draft.name} maxLength={200} onChange={(event) => set({ name: event.target.value })} problem={at("name")} hint="What readers see." />
            <TextField label="Code" value={draft.code} maxLength={16} disabled={before !== null} placeholder={codeOf(linesOf(draft.seeds)[0] ?? "")} onChange={(event) => set({ code: event.target.value })} problem={at("code")} hint={before ? "It stays for ever." : "Lower-case letters, digits, hyphens; for ever."} />
            <div className="sm:col-span-2"><TextArea label="Description" rows={2} maxLength={4000} value={draft.description} onChange={(event) => set({ description: event.target.value })} problem={at("description")} /></div>
            <SelectField label="Shown to" value={draft.visibility} onChange={(event) => set({ visibility: event.target.value as Draft["visibility"] })} problem={at("visibility")} hint="Who may see what was captured of it.">
              <option value="public">everybody</option>
              <option value="members">members who have signed in</option>
            </SelectField>
          </div>
        </Card>
        <Card title="How far it goes">
          <div className="grid gap-4 sm:grid-cols-2">
            <div className="sm:col-span-2">
              <SelectField label="Scope" value={draft.scope} onChange={(event) => set({ scope: event.target.value })} problem={at("scope")}>
                {Object.entries(SCOPES).map(([scope, said]) => <option key={scope} value={scope}>{said}</option>)}
              </SelectField>
            </div>
            <TextArea label="Also in" rows={3} spellCheck={false} className="font-mono text-sm" value={draft.include} onChange={(event) => set({ include: event.target.value })} problem={at("include")} hint="Patterns (RE2), one on each line: what matches belongs to it besides." />
            <TextArea label="Left out" rows={3} spellCheck={false} className="font-mono text-sm" value={draft.exclude} onChange={(event) => set({ exclude: event.target.value })} problem={at("exclude")} hint="Patterns (RE2), one on each line: addresses that match are not crawled." />
            <SelectField label="Exclude a common kind" value="" onChange={(event) => set({ exclude: [...new Set([...linesOf(draft.exclude), `preset:${event.target.value}`])].join("\n") })} hint="Adds a line to the exclusions.">
              <option value="" disabled>Choose</option>
              {Object.entries(presets ?? {}).map(([name, rule]) => <option key={name} value={name} title={rule}>{name}</option>)}
            </SelectField>
            <TextField label="Links away from a seed" type="number" min={-1} value={draft.maxDepth} onChange={(event) => set({ maxDepth: event.target.value })} problem={at("max_depth")} hint="0 is the seeds alone, -1 no limit." />
            <TextField label="Pages at most" type="number" min={1} value={draft.maxPages} placeholder="no limit" onChange={(event) => set({ maxPages: event.target.value })} problem={at("max_pages")} />
            <Check label="Read sitemaps for links" value={draft.sitemaps} onChange={(sitemaps) => set({ sitemaps })} />
            <Check label="Fetch what pages embed" value={draft.requisites} onChange={(requisites) => set({ requisites })} />
            <Check label="Find its feeds and poll them" value={draft.feeds} onChange={(feeds) => set({ feeds })} />
          </div>
        </Card>
        <Card title="How gently">
          <div className="grid gap-4 sm:grid-cols-2">
            <TextField label="Seconds between two requests" type="number" min={0} step="0.1" value={draft.delay} placeholder="the server's setting" onChange={(event) => set({ delay: event.target.value })} problem={at("delay_s")} hint="To one host. Never less than 1 on the public web." />
            <SelectField label="robots.txt" value={draft.robots} onChange={(event) => set({ robots: event.target.value as Draft["robots"] })} problem={at("robots")}>
              <option value="obey">is obeyed</option>
              <option value="ignore">is not obeyed, for a reason</option>
            </SelectField>
            {draft.robots === "ignore" && <div className="sm:col-span-2"><TextField label="Reason" value={draft.robotsReason} maxLength={500} onChange={(event) => set({ robotsReason: event.target.value })} problem={at("robots_reason")} hint="Kept in the audit log: a permission, a law, your own site." /></div>}
          </div>
        </Card>
        <Card title="When">
          <div className="grid gap-4 sm:grid-cols-2">
            <TextField label="Every" type="number" min={1} value={draft.every} placeholder="not by itself" onChange={(event) => set({ every: event.target.value })} problem={at("interval_minutes")} hint="Left empty, it runs only when asked to." />
            <SelectField label="Unit" value={draft.unit} onChange={(event) => set({ unit: event.target.value as Draft["unit"] })} problem={at("interval_type")}>
              <option value="minutes">minutes</option>
              <option value="hours">hours</option>
              <option value="days">days</option>
            </SelectField>
            <div className="sm:col-span-2"><Check label="Less often while its first page stays the same" value={draft.adapts} onChange={(adapts) => set({ adapts })} /></div>
          </div>
        </Card>
        {save.error && !problem?.field ? <Problem problem={save.error} /> : null}
        {problem?.field && <Notice tone="bad" title="It is not saved.">{problem.message}</Notice>}
        {save.isSuccess && <Notice tone="good" title={save.data.said} />}
        <Button kind="main" type="submit" disabled={save.isPending}>{before ? "Save" : "Make the source"}</Button>
      </form>
      <SourcePreview draft={draft} before={before} />
    </div>
  );
}

function Check({ label, value, onChange }: { label: string; value: boolean; onChange: (value: boolean) => void }) {
  return <label className="flex min-h-10 items-center gap-2"><input type="checkbox" className="size-5 accent-accent" checked={value} onChange={(event) => onChange(event.target.checked)} />{label}</label>;
}

function SeedFile({ onRead }: { onRead: (text: string) => void }) {
  return (
    <label className="inline-flex min-h-10 cursor-pointer items-center gap-2 rounded-part border border-edge px-3.5 py-1.5 font-semibold focus-within:outline-3 focus-within:outline-accent hover:bg-sunk">
      <Upload aria-hidden className="size-4" />Add seeds from a file
      <input type="file" accept=".txt,.csv,text/plain,text/csv" className="sr-only" onChange={async (event) => {
        const file = event.target.files?.[0];
        if (file) onRead(await file.text());
        event.target.value = "";
      }} />
    </label>
  );
}
