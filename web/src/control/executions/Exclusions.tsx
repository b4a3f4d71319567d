import { useState } from "react";
import { ApiProblem } from "@/api/problem";
import { Problem } from "@/app/Problem";
import { Button } from "@/design/Button";
import { Card } from "@/design/Card";
import { TextArea } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { count, counted } from "../charts/format";
import { useSettled } from "../live/useSettled";
import { linesOf } from "../sources/fields";
import { problemAt } from "../sources/form";
import { useExclusions, useExclusionsPreview, useSetExclusions } from "./useExclusions";

/** Patterns that leave addresses out: those that a run began with, and those that are added while it goes on. */
export function Exclusions({ id, isRunning, isAhead }: { id: number; isRunning: boolean; isAhead: boolean }) {
  const { data, error, refetch } = useExclusions(id);
  if (error && !data) return <Problem problem={error} onAgain={() => void refetch()} />;
  if (!data) return <div className="min-h-64" aria-busy />;
  return (
    <div className="grid items-start gap-5 lg:grid-cols-2">
      {data.is_editable && isRunning ? <Editor id={id} added={data.added} /> : (
        <Card title="Added while it ran">
          {data.added.length > 0 ? <Rules rules={data.added} /> : <p className="text-soft">None.</p>}
          {!isRunning && <p className="mt-3 text-sm text-soft">{isAhead ? "It has not begun yet. Patterns can be added as soon as it runs." : "The run is over. For the next one, change the rules of its source."}</p>}
        </Card>
      )}
      <Card title="From the beginning">
        {data.rules.length > 0 ? <Rules rules={data.rules} /> : <p className="text-soft">Its source leaves nothing out by pattern.</p>}
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
    <Card title="While it runs">
      <div className="space-y-4">
        <TextArea label="Leave out" rows={6} spellCheck={false} className="font-mono text-sm" value={text} onChange={(event) => { write(event.target.value); if (save.isError) save.reset(); }} problem={atRules}
          hint="Patterns (RE2), one on each line, searched for anywhere in an address: /calendar/ or \?sort= or \.zip$" />
        <div role="status" className="min-h-12 text-sm">
          {fresh.length === 0 ? <p className="text-soft">Write a pattern, and you see how much of the queue it matches.</p>
            : preview.data && !problem && <p><strong>{counted(preview.data.matching, "queued address", "queued addresses")}</strong> of {count(preview.data.looked_at)}{preview.data.is_all ? "" : " looked at, and more are queued"} would not be asked for.</p>}
        </div>
        {fresh.length > 0 && preview.data && preview.data.samples.length > 0 && !problem && <ul className="space-y-0.5 text-sm text-soft">{preview.data.samples.slice(0, 5).map((url) => <li key={url} className="break-all">{url}</li>)}</ul>}
        {problem && !atRules ? <Problem problem={problem} /> : null}
        {save.isSuccess && isSame && <Notice tone="good" title="The run heard of it, or will within a second." actions={null}>What is queued and matches is left out when its turn comes. A rule that you take away counts for what is found from then on.</Notice>}
        <div className="flex flex-wrap gap-2">
          <Button kind="main" disabled={isSame || save.isPending} onClick={() => save.mutate(rules)}>Apply to this run</Button>
          {!isSame && <Button onClick={() => write(added.join("\n"))}>As before</Button>}
        </div>
      </div>
    </Card>
  );
}
