import { useState } from "react";
import { Problem } from "@/app/Problem";
import { counted } from "@/control/charts/format";
import type { Deed } from "@/control/page/Done";
import { plain } from "@/control/page/words";
import { Button } from "@/design/Button";
import { Dialog } from "@/design/Dialog";
import { SelectField, TextField } from "@/design/Field";
import { Tag, type Tone } from "@/design/Tag";
import { useSourceChoices } from "@/control/sources/useSources";
import { usePlanEditions, type PlanForm } from "./useEditions";

const TONES: Record<string, Tone> = { create: "good", attach: "accent", skip: "plain", error: "bad" };

/** A year is planned: first what would be made, then it is made. */
export function PlanEditions({ onClose, onDone }: { onClose: () => void; onDone: (deed: Deed) => void }) {
  const sources = useSourceChoices();
  const [year, setYear] = useState(() => String(new Date().getUTCFullYear() + 1));
  const [source, setSource] = useState("");
  const [way, setWay] = useState<"yearly" | "shards">("yearly");
  const plan = usePlanEditions();
  const apply = usePlanEditions();
  const form: PlanForm = { apply: false, year: Number(year), shards: way === "shards", sources: source ? [source] : [] };
  const isYear = /^\d{4}$/.test(year);
  const made = plan.data?.entries.filter((entry) => entry.action === "create" || entry.action === "attach").length ?? 0;
  const isAsked = plan.data !== undefined && JSON.stringify(plan.variables) === JSON.stringify(form);
  function go() {
    apply.mutate({ ...form, apply: true }, { onSuccess: (done) => {
      onDone({ title: `${counted(done.created, "job was", "jobs were")} made for ${done.year}`, text: "They run when their date comes; a job can be cancelled under Jobs." });
      onClose();
    } });
  }
  return (
    <Dialog isOpen title="Plan a year" onClose={onClose} actions={
      <>
        <Button onClick={onClose}>Close</Button>
        <Button disabled={!isYear || plan.isPending} onClick={() => plan.mutate(form)}>{plan.isPending ? "Planning…" : "Show the plan"}</Button>
        <Button kind="main" disabled={!isAsked || made === 0 || (plan.data?.errors ?? 0) > 0 || apply.isPending} onClick={go}>{apply.isPending ? "Making…" : `Make ${counted(made, "job")}`}</Button>
      </>
    }>
      <div className="space-y-3">
        <div className="grid gap-3 sm:grid-cols-2">
          <TextField label="Year" inputMode="numeric" value={year} onChange={(event) => setYear(event.target.value)} problem={isYear ? null : "Type a year of four figures."} />
          <SelectField label="Sources" value={source} onChange={(event) => setSource(event.target.value)}>
            <option value="">All that are kept yearly</option>
            {sources?.map((one) => <option key={one.code} value={one.code}>{one.name}</option>)}
          </SelectField>
        </div>
        <SelectField label="What" value={way} onChange={(event) => setWay(event.target.value as typeof way)}>
          <option value="yearly">One crawl a source, on 1 January</option>
          <option value="shards">A shard for each seed where the report shows gaps</option>
        </SelectField>
        {plan.error || apply.error ? <Problem problem={plan.error ?? apply.error} /> : null}
        {isAsked && plan.data && (
          <>
            <p role="status" className="font-semibold">{plan.data.entries.length === 0 ? "No source is kept yearly: set schedule_hint to annual in a source." : `${counted(made, "job")} would be made${plan.data.errors ? `; ${counted(plan.data.errors, "problem keeps", "problems keep")} the plan from being applied` : ""}`}</p>
            <ul className="max-h-64 divide-y divide-line overflow-auto">
              {plan.data.entries.map((entry, at) => (
                <li key={at} className="py-1.5">
                  <Tag tone={TONES[entry.action] ?? "plain"}>{entry.action}</Tag> <span className="break-all">{entry.name ?? entry.source}{entry.shardKey ? ` (${entry.shardKey})` : ""}</span>
                  {entry.reason && <span className="text-sm text-soft"> {plain(entry.reason)}</span>}
                  {entry.notes.map((note) => <p key={note} className="text-sm text-soft">{note}</p>)}
                </li>
              ))}
            </ul>
          </>
        )}
      </div>
    </Dialog>
  );
}
