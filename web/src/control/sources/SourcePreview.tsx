import { CircleCheck, CircleMinus, Globe } from "lucide-react";
import { useState } from "react";
import type { ApiProblem } from "@/api/problem";
import { Problem } from "@/app/Problem";
import { Button } from "@/design/Button";
import { Card } from "@/design/Card";
import { TextArea } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { duration } from "../charts/format";
import { Moment } from "../live/Moment";
import { sentence } from "../page/words";
import { linesOf } from "./fields";
import { ruleText } from "../executions/outcomes";
import { scheduleText } from "./schedule";
import type { Draft } from "./form";
import { useSurvey, type Preview, type Survey } from "./useSources";
import { warningText } from "./warnings";
import { t } from "@/language/control/sources";

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
    <aside aria-label={t("preview")} className="min-w-0 space-y-5 xl:sticky xl:top-4">
      <Card title={t("would")} className="min-h-64">
        {seed === undefined ? <p className="mb-4 text-soft">{t("writeSeed")}</p> : (
          <div className="mb-4 space-y-3">
            <Button disabled={survey.isPending || problem !== null} onClick={() => survey.mutate({ url: seed, config }, { onSuccess: (found) => onSample([...linesOf(tried), ...found.addresses.map((one) => one.url)]) })}><Globe aria-hidden className="size-4" />{survey.isPending ? t("reading") : t("read")}</Button>
            <div role="status">{survey.data ? <Found survey={survey.data} /> : survey.isPending ? null : <p className="text-sm text-soft">{t("readHow")}</p>}</div>
            {survey.error ? <Problem problem={survey.error} /> : null}
          </div>
        )}
        {problem && <div className="mb-4"><Notice tone="warn" title={wrong ? t("correct", { field: wrong }) : t("notYet")}>{wrong ? t("checkedAgain") : problem.message}</Notice></div>}
        {preview && <Judged urls={preview.urls} forbidden={forbidden} />}
        <TextArea label={t("try")} rows={3} spellCheck={false} value={tried} onChange={(event) => { tryOut(event.target.value); onSample([...linesOf(event.target.value), ...read]); }} hint={t("tryHint")} />
      </Card>
      {preview && preview.warnings.length > 0 && <Notice tone="warn" title={t("check")}><ul className="list-disc pl-4">{preview.warnings.map((warning) => <li key={warning}>{warningText(warning) ?? <span lang="en">{warning}</span>}</li>)}</ul></Notice>}
    </aside>
  );
}

/** What reading the site told, in a few figures. */
function Found({ survey }: { survey: Survey }) {
  const pages = survey.page_count === null || survey.page_count === undefined ? t("noSitemap", { count: survey.linked_pages }) : t(survey.page_count_is_exact ? "inSitemaps" : "inSitemapsLeast", { count: survey.page_count });
  return (
    <p className="text-sm">
      <strong className="block break-words">{survey.title ?? survey.final_url}</strong>
      {pages}{survey.estimated_s ? ` ${t("takes", { time: duration(survey.estimated_s), seconds: survey.delay_s })}` : ""}{survey.robots.forbidden ? ` ${t("forbids", { forbidden: survey.robots.forbidden, count: survey.robots.judged })}` : ""}
    </p>
  );
}

/** When it would run, as the scheduler computes it. */
export function NextRuns({ draft, preview }: { draft: Draft; preview: Preview | undefined }) {
  return (
    <section aria-label={t("nextRuns")} className="mt-4 min-h-24 border-t border-line pt-3">
      {draft.often === "once" ? <p className="text-soft">{t("onlyByHand")}</p> : preview ? (
        <>
          <p>{t("nextRunsOf", { schedule: sentence(scheduleText(preview.schedule)) })}</p>
          <ol className="mt-1 list-decimal space-y-1 pl-5">{preview.next_runs.slice(0, SHOWN_RUNS).map((at) => <li key={at}><Moment at={at} both /></li>)}</ol>
        </>
      ) : <p className="text-soft">{t("writeSeedRuns")}</p>}
    </section>
  );
}

function Judged({ urls, forbidden }: { urls: Preview["urls"]; forbidden: ReadonlySet<string> }) {
  return (
    <ul className="mb-4 max-h-[28rem] space-y-2 overflow-y-auto" tabIndex={0} aria-label={t("addresses")}>
      {urls.map((judged) => {
        const isForbidden = judged.in_scope && forbidden.has(judged.url);
        const one = isForbidden ? { ...judged, in_scope: false } : judged;
        const Icon = one.in_scope ? CircleCheck : CircleMinus;
        return (
          <li key={one.url} className="flex gap-2">
            <Icon aria-hidden className={`mt-0.5 size-4 shrink-0 ${one.in_scope ? "text-good" : "text-bad"}`} />
            <span className="min-w-0"><span className="block text-sm break-all">{one.url}</span><span className="text-sm text-soft"><strong className={one.in_scope ? "text-good" : "text-bad"}>{one.in_scope ? t("in") : t("out")}</strong>: {isForbidden ? t("robotsForbids") : ruleText(one.rule, one.in_scope) ?? <span lang="en">{one.sentence}</span>}</span></span>
          </li>
        );
      })}
    </ul>
  );
}
