import { useState } from "react";
import { ApiProblem } from "@/api/problem";
import { Problem } from "@/app/Problem";
import { useMay } from "@/app/useSession";
import { Button } from "@/design/Button";
import { Card } from "@/design/Card";
import { TextArea } from "@/design/Field";
import { Notice } from "@/design/Notice";

import { useSettled } from "../live/useSettled";
import { linesOf, problemAt } from "../sources/fields";
import { useExclusions, useExclusionsPreview, useSetExclusions } from "./useExclusions";
import { t } from "@/language/control/runUrls";
import { withParts } from "@/language/room";

/** Patterns that leave addresses out: those that a run began with, and those that are added while it goes on. */
export function Exclusions({ id, isRunning, isAhead }: { id: number; isRunning: boolean; isAhead: boolean }) {
  const mayOperate = useMay("operate");
  const { data, error, refetch } = useExclusions(id);
  if (error && !data) return <Problem problem={error} onAgain={() => void refetch()} />;
  if (!data) return <div className="min-h-64" aria-busy />;
  return (
    <div className="grid items-start gap-5 lg:grid-cols-2">
      {mayOperate && data.is_editable && isRunning ? <Editor id={id} added={data.added} /> : (
        <Card title={t("added")}>
          {data.added.length > 0 ? <Rules rules={data.added} /> : <p className="text-soft">{t("none")}</p>}
          {!isRunning && <p className="mt-3 text-sm text-soft">{isAhead ? t("rulesAhead") : t("rulesOver")}</p>}
        </Card>
      )}
      <Card title={t("rulesFirst")}>
        {data.rules.length > 0 ? <Rules rules={data.rules} /> : <p className="text-soft">{t("rulesNone")}</p>}
      </Card>
    </div>
  );
}

function Rules({ rules }: { rules: string[] }) {
  return <ul className="space-y-1">{rules.map((rule) => <li key={rule}><code className="break-all">{rule}</code></li>)}</ul>;
}

function Editor({ id, added }: { id: number; added: string[] }) {
  const [text, write] = useState(added.join("\n"));
  const rules = linesOf(text);
  const fresh = rules.filter((rule) => !added.includes(rule));
  const save = useSetExclusions(id);
  const preview = useExclusionsPreview(id, useSettled(fresh, 400));
  const problem = save.error ?? (fresh.length > 0 ? preview.error : null);
  const atRules = problem instanceof ApiProblem ? problemAt(problem, "rules") : null;
  const isSame = rules.join("\n") === added.join("\n");
  return (
    <Card title={t("rulesNow")}>
      <div className="space-y-4">
        <TextArea label={t("leaveOut")} rows={6} spellCheck={false} className="font-mono text-sm" value={text} onChange={(event) => { write(event.target.value); if (save.isError) save.reset(); }} problem={atRules}
          hint={t("patternsHint")} />
        <div role="status" className="min-h-12 text-sm">
          {fresh.length === 0 ? <p className="text-soft">{t("writePattern")}</p>
            : preview.data && !problem && <p>{withParts(t(preview.data.is_all ? "matchAll" : "matchSome", { all: preview.data.looked_at }), { matching: <strong>{t("matching", { count: preview.data.matching })}</strong> })}</p>}
        </div>
        {fresh.length > 0 && preview.data && preview.data.samples.length > 0 && !problem && <ul className="space-y-0.5 text-sm text-soft">{preview.data.samples.slice(0, 5).map((url) => <li key={url} className="break-all">{url}</li>)}</ul>}
        {problem && !atRules ? <Problem problem={problem} /> : null}
        {save.isSuccess && isSame && <Notice tone="good" title={t("applied")} actions={null}>{t("appliedHow")}</Notice>}
        <div className="flex flex-wrap gap-2">
          <Button kind="main" disabled={isSame || save.isPending} onClick={() => save.mutate(rules)}>{t("apply")}</Button>
          {!isSame && <Button onClick={() => write(added.join("\n"))}>{t("asBefore")}</Button>}
        </div>
      </div>
    </Card>
  );
}
