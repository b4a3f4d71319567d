import { CircleCheck, CircleMinus } from "lucide-react";
import { useState } from "react";
import { ApiProblem } from "@/api/problem";
import { Card } from "@/design/Card";
import { TextArea } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { Moment } from "../live/Moment";
import { useSettled } from "../live/useSettled";
import { linesOf } from "./fields";
import { contentOf, samplesOf, type Draft } from "./form";
import { usePreview, type PreviewWish, type Source } from "./useSources";

/** What the source would do as it stands in the form: what is in and out, by which rule, and when it runs. */
export function SourcePreview({ draft, before }: { draft: Draft; before: Source | null }) {
  const [tried, tryOut] = useState("");
  const seeds = linesOf(draft.seeds);
  const every = Number(draft.every);
  const wish: PreviewWish | null = seeds.length === 0 ? null : {
    source: contentOf(draft, before ?? undefined),
    urls: [...linesOf(tried), ...samplesOf(draft.seeds)].slice(0, 100),
    interval: draft.every.trim() && Number.isInteger(every) && every > 0 ? every : null,
    unit: draft.unit,
  };
  const asked = useSettled(wish, 400);
  const { data, error } = usePreview(asked);
  const problem = error instanceof ApiProblem ? error : null;
  return (
    <aside aria-label="What it would do" className="min-w-0 space-y-5 xl:sticky xl:top-4">
      <Card title="In and out" className="min-h-64">
        {!wish && <p className="text-soft">Write a seed, and what the scope takes is shown here.</p>}
        {problem && <Notice tone="warn" title="Not yet">{problem.message}</Notice>}
        {wish && data && !problem && (
          <ul className="mb-4 space-y-2">
            {data.urls.map((one) => {
              const Icon = one.in_scope ? CircleCheck : CircleMinus;
              return (
                <li key={one.url} className="flex gap-2">
                  <Icon aria-hidden className={`mt-0.5 size-4 shrink-0 ${one.in_scope ? "text-good" : "text-bad"}`} />
                  <span className="min-w-0"><span className="block text-sm break-all">{one.url}</span><span className="text-sm text-soft"><strong className={one.in_scope ? "text-good" : "text-bad"}>{one.in_scope ? "in" : "out"}</strong>: {one.sentence}</span></span>
                </li>
              );
            })}
          </ul>
        )}
        <TextArea label="Try addresses" rows={3} spellCheck={false} value={tried} onChange={(event) => tryOut(event.target.value)} hint="One on each line. They are judged as the crawl would judge them." />
      </Card>
      <Card title="Next runs" className="min-h-32">
        {!draft.every.trim() ? <p className="text-soft">It runs only when you ask it to.</p> : (
          <>
            <p>{Number.isInteger(every) && every > 0 ? `Every ${every === 1 ? draft.unit.slice(0, -1) : `${every} ${draft.unit}`}${draft.adapts ? ", less often while nothing changes" : ""}.` : "Write a whole number."}</p>
            {data && data.next_runs.length > 0 && <ol className="mt-2 list-decimal space-y-1 pl-5">{data.next_runs.map((at) => <li key={at}><Moment at={at} /></li>)}</ol>}
          </>
        )}
      </Card>
      {data && data.warnings.length > 0 && !problem && <Notice tone="warn" title="Worth a second look"><ul className="list-disc pl-4">{data.warnings.map((warning) => <li key={warning}>{warning}</li>)}</ul></Notice>}
    </aside>
  );
}
