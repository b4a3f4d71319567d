import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Problem } from "@/app/Problem";
import type { Deed } from "@/control/page/Done";
import { Button, buttonClass } from "@/design/Button";
import { Dialog } from "@/design/Dialog";
import { SelectField, TextField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { Tag, type Tone } from "@/design/Tag";
import { Check } from "@/control/page/Check";
import { useSourceChoices } from "@/control/sources/useSources";
import { sourcesOfYear, whyNot } from "./planning";
import { useApplyPlan, usePlan, type Plan, type PlanForm } from "./useEditions";
import { t } from "@/language/control/editions";
import { t as common } from "@/language/control/common";

const TONES: Record<string, Tone> = { create: "good", attach: "accent", skip: "plain", error: "bad" };

/** The editions of a year are planned: what would be made is shown at once, and made with one click. */
export function PlanEditions({ onClose, onDone }: { onClose: () => void; onDone: (deed: Deed) => void }) {
  const sources = useSourceChoices();
  const [year, setYear] = useState(() => String(new Date().getUTCFullYear() + 1));
  const [chosen, choose] = useState<string[] | null>(null);
  const [way, setWay] = useState<"yearly" | "shards">("yearly");
  const codes = chosen ?? sourcesOfYear(sources ?? []);
  const isYear = /^\d{4}$/.test(year);
  const form: PlanForm = { apply: false, year: Number(year), shards: way === "shards", sources: codes };
  const plan = usePlan(isYear && codes.length > 0 ? form : null);
  const apply = useApplyPlan();
  const made = plan.data?.entries.filter((entry) => entry.action === "create" || entry.action === "attach").length ?? 0;
  function go() {
    apply.mutate({ ...form, apply: true }, { onSuccess: (done) => {
      onDone({ title: t("planned", { count: done.created, year: String(done.year) }), text: t("plannedHow") });
      onClose();
    } });
  }
  if (sources?.length === 0) {
    return (
      <Dialog isOpen title={t("planYear")} onClose={onClose} actions={<Button onClick={onClose}>{common("close")}</Button>}>
        <Notice title={t("noSources")} actions={<Link to="/control/sources/new" className={buttonClass("main")}>{t("newSource")}</Link>}>{t("noSourcesHow")}</Notice>
      </Dialog>
    );
  }
  return (
    <Dialog isOpen title={t("planYear")} onClose={onClose} actions={
      <>
        <Button onClick={onClose}>{common("cancel")}</Button>
        <Button kind="main" disabled={plan.isFetching || made === 0 || (plan.data?.errors ?? 0) > 0 || apply.isPending} onClick={go}>{apply.isPending ? t("planning") : made ? t("planCrawls", { count: made }) : t("plan")}</Button>
      </>
    }>
      <div className="space-y-3">
        <div className="grid gap-3 sm:grid-cols-2">
          <TextField label={t("year")} inputMode="numeric" value={year} onChange={(event) => setYear(event.target.value)} problem={isYear ? null : t("typeYear")} />
          <SelectField label={t("what")} value={way} onChange={(event) => setWay(event.target.value as typeof way)}>
            <option value="yearly">{t("oneEach")}</option>
            <option value="shards">{t("onlySeeds")}</option>
          </SelectField>
        </div>
        <p className="text-soft">{way === "yearly" ? t("yearlyHow", { year: isYear ? year : t("ofYear") }) : t("shardsHow")}</p>
        <fieldset className="min-w-0">
          <legend className="font-semibold">{t("sources")}</legend>
          <div className="max-h-40 overflow-auto rounded-part border border-line px-3" tabIndex={0} role="group" aria-label={t("sourcesToPlan")}>
            {sources?.map((one) => <Check key={one.code} label={one.name} value={codes.includes(one.code)} onChange={(isIn) => choose(isIn ? [...codes, one.code] : codes.filter((code) => code !== one.code))} />)}
          </div>
        </fieldset>
        {plan.error || apply.error ? <Problem problem={plan.error ?? apply.error} /> : null}
        <div role="status" className="min-h-24">{codes.length === 0 ? <p>{t("chooseOne")}</p> : plan.data && <Entries plan={plan.data} made={made} />}</div>
      </div>
    </Dialog>
  );
}

function Entries({ plan, made }: { plan: Plan; made: number }) {
  return (
    <>
      <p className="font-semibold">{plan.errors ? t("problems", { count: plan.errors }) : made ? t("willPlan", { count: made, year: String(plan.year) }) : t("nothingToPlan", { year: String(plan.year) })}</p>
      <ul className="max-h-48 divide-y divide-line overflow-auto" tabIndex={0} aria-label={t("thePlan")}>
        {plan.entries.map((entry, at) => (
          <li key={at} className="py-1.5">
            <Tag tone={TONES[entry.action] ?? "plain"}>{t.of("action", entry.action)}</Tag> <span className="break-all">{entry.name ?? entry.source}{entry.shardKey ? ` (${entry.shardKey})` : ""}</span>
            {entry.reason && <span className="text-sm text-soft"> {whyNot(entry.reason)}</span>}
            {entry.notes.map((note) => <p key={note} className="text-sm text-soft">{note}</p>)}
          </li>
        ))}
      </ul>
    </>
  );
}
