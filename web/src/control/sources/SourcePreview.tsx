import { CircleCheck, CircleMinus, Globe } from "lucide-react";
import { useState } from "react";
import type { ApiProblem } from "@/api/problem";
import { Problem } from "@/app/Problem";
import { Button } from "@/design/Button";
import { Card } from "@/design/Card";
import { TextArea } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { count, counted, duration } from "../charts/format";
import { Moment } from "../live/Moment";
import { sentence } from "../page/words";
import { linesOf } from "./fields";
import type { Draft } from "./form";
import { useSurvey, type Preview, type Survey } from "./useSources";

const SHOWN_RUNS = 3;

interface Shown {
  draft: Draft;
  /** How the form would crawl it. */
  config: unknown;
  preview: Preview | undefined;
  /** The label of the box that is wrong. */
  wrong: string | null;
  problem: ApiProblem | null;
  onSample: (urls: string[]) => void;
}

/** What the source would do as it stands in the form: which addresses it takes, by which rule, and when it runs. */
export function SourcePreview({ draft, config, preview, wrong, problem, onSample }: Shown) {
  const [tried, tryOut] = useState("");
  const [seed] = linesOf(draft.seeds);
  const survey = useSurvey();
  const read = survey.data?.addresses.map((one) => one.url) ?? [];
  const forbidden = new Set((draft.robots === "obey" ? survey.data?.addresses : [])?.filter((one) => one.allowed === false).map((one) => one.url));
  return (
    <aside aria-label="Preview" className="min-w-0 space-y-5 xl:sticky xl:top-4">
      <Card title="What would be crawled" className="min-h-64">
        {seed === undefined ? <p className="mb-4 text-soft">Write a seed; the addresses that would be crawled appear here.</p> : (
          <div className="mb-4 space-y-3">
            <Button disabled={survey.isPending || problem !== null} onClick={() => survey.mutate({ url: seed, config }, { onSuccess: (found) => onSample([...linesOf(tried), ...found.addresses.map((one) => one.url)]) })}><Globe aria-hidden className="size-4" />{survey.isPending ? "Reading the site…" : "Read the site"}</Button>
            <div role="status">{survey.data ? <Found survey={survey.data} /> : survey.isPending ? null : <p className="text-sm text-soft">Requests robots.txt, the sitemaps and the first page, and shows real addresses here.</p>}</div>
            {survey.error ? <Problem problem={survey.error} /> : null}
          </div>
        )}
        {problem && <div className="mb-4"><Notice tone="warn" title={wrong ? `Correct “${wrong}”` : "Not possible yet"}>{wrong ? "The addresses are judged again as soon as it is right." : problem.message}</Notice></div>}
        {preview && <Judged urls={preview.urls} forbidden={forbidden} />}
        <TextArea label="Try addresses" rows={3} spellCheck={false} value={tried} onChange={(event) => { tryOut(event.target.value); onSample([...linesOf(event.target.value), ...read]); }} hint="One on each line. They are judged as the crawl would judge them." />
      </Card>
      {preview && preview.warnings.length > 0 && <Notice tone="warn" title="Please check"><ul className="list-disc pl-4">{preview.warnings.map((warning) => <li key={warning}>{warning}</li>)}</ul></Notice>}
    </aside>
  );
}

/** What reading the site told, in a few figures. */
function Found({ survey }: { survey: Survey }) {
  const pages = survey.page_count === null || survey.page_count === undefined ? `No sitemap; the first page links to ${counted(survey.linked_pages, "page")}.` : `${survey.page_count_is_exact ? "" : "At least "}${counted(survey.page_count, "page")} in its sitemaps.`;
  return (
    <p className="text-sm">
      <strong className="block break-words">{survey.title ?? survey.final_url}</strong>
      {pages}{survey.estimated_s ? ` About ${duration(survey.estimated_s)} at ${survey.delay_s} s between requests.` : ""}{survey.robots.forbidden ? ` robots.txt forbids ${count(survey.robots.forbidden)} of ${counted(survey.robots.judged, "address", "addresses")}.` : ""}
    </p>
  );
}

/** When it would run, as the scheduler computes it. */
export function NextRuns({ draft, preview }: { draft: Draft; preview: Preview | undefined }) {
  return (
    <section aria-label="Next runs" className="mt-4 min-h-24 border-t border-line pt-3">
      {draft.often === "once" ? <p className="text-soft">It runs only when you start it.</p> : preview ? (
        <>
          <p>{sentence(preview.schedule)} Next runs:</p>
          <ol className="mt-1 list-decimal space-y-1 pl-5">{preview.next_runs.slice(0, SHOWN_RUNS).map((at) => <li key={at}><Moment at={at} both /></li>)}</ol>
        </>
      ) : <p className="text-soft">Write a seed; the next three runs appear here.</p>}
    </section>
  );
}

function Judged({ urls, forbidden }: { urls: Preview["urls"]; forbidden: ReadonlySet<string> }) {
  return (
    <ul className="mb-4 max-h-[28rem] space-y-2 overflow-y-auto" tabIndex={0} aria-label="Addresses in and out of scope">
      {urls.map((judged) => {
        const one = judged.in_scope && forbidden.has(judged.url) ? { ...judged, in_scope: false, sentence: "robots.txt forbids it" } : judged;
        const Icon = one.in_scope ? CircleCheck : CircleMinus;
        return (
          <li key={one.url} className="flex gap-2">
            <Icon aria-hidden className={`mt-0.5 size-4 shrink-0 ${one.in_scope ? "text-good" : "text-bad"}`} />
            <span className="min-w-0"><span className="block text-sm break-all">{one.url}</span><span className="text-sm text-soft"><strong className={one.in_scope ? "text-good" : "text-bad"}>{one.in_scope ? "in" : "out"}</strong>: {one.sentence}</span></span>
          </li>
        );
      })}
    </ul>
  );
}
