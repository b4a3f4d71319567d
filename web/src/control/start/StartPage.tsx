import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { ApiProblem } from "@/api/problem";
import { Problem } from "@/app/Problem";
import { startRoute } from "@/app/crawlRoutes";
import { Button } from "@/design/Button";
import { Card } from "@/design/Card";
import { TextField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { useStartCrawl } from "../jobs/useJobs";
import { PageHead } from "../page/PageHead";
import { useWrongField } from "../page/useWrongField";
import { sentence } from "../page/words";
import { useManagedSources } from "../sources/useSources";
import { Progress } from "./Progress";
import { Surveyed } from "./Surveyed";
import { readAskedStart } from "./asked";
import { isLikeAddress, type Scope } from "./survey";
import { useSurvey } from "./useStart";
import { t } from "@/language/control/start";

/** From an address to a searchable website: check it, see what would be crawled, start, watch. */
export function StartPage() {
  const { job, contactFor } = readAskedStart({ ...startRoute.useSearch() });
  const { data } = useManagedSources({});
  if (job) return <Progress job={job} />;
  return (
    <div className="max-w-4xl space-y-5">
      <PageHead title={t(data?.total === 0 ? "titleFirst" : "title")}>
        {t("intro")}
      </PageHead>
      <AddWebsite key={contactFor} contactFor={contactFor} />
    </div>
  );
}

const CONTACT = new Set(["contact_missing", "contact_refused"]);

function AddWebsite({ contactFor }: { contactFor: string | undefined }) {
  const [address, write] = useState(contactFor ?? "");
  const [contact, reachAt] = useState("");
  const navigate = useNavigate();
  const survey = useSurvey();
  const start = useStartCrawl();
  const problem = survey.error instanceof ApiProblem ? survey.error : null;
  // The field stays once it was asked for: whoever mistyped it corrects it there.
  const [asksContact, askContact] = useState(contactFor !== undefined);
  const isAboutContact = CONTACT.has(problem?.code ?? "");
  const form = useWrongField(survey.error);
  const [scope, choose] = useState<Scope>("host");
  function check(within: Scope, url = address.trim()) {
    choose(within);
    if (!url) return;
    start.reset();
    survey.mutate({ url, ...(contact.trim() ? { contact: contact.trim() } : {}), ...(within === "host" ? {} : { config: { scope: within } }) }, { onError: (error) => { if (error instanceof ApiProblem && CONTACT.has(error.code)) askContact(true); } });
  }
  return (
    <>
      <Card>
        <form ref={form} onSubmit={(event) => { event.preventDefault(); check("host"); }} className="space-y-4" aria-label={t("form")}>
          <TextField label={t("address")} hint={t("addressHint")} required autoFocus={!asksContact} autoComplete="url" inputMode="url" autoCapitalize="none" spellCheck={false} maxLength={8192}
            value={address} onChange={(event) => write(event.target.value)} problem={problem?.code === "url_refused" ? (isLikeAddress(address) ? sentence(problem.message) : t("notAddress")) : null} />
          {asksContact && (
            <TextField label={t("contact")} hint={t("contactHint")} required autoFocus autoComplete="email" autoCapitalize="none" spellCheck={false} maxLength={200}
              value={contact} onChange={(event) => reachAt(event.target.value)} problem={problem?.code === "contact_refused" ? sentence(problem.message) : null} />
          )}
          <p className="flex flex-wrap items-center gap-3">
            <Button kind={survey.data ? "plain" : "main"} type="submit" disabled={survey.isPending}>{survey.isPending ? t("checking") : t("check")}</Button>
            <span role="status" className="text-sm text-soft">{survey.isPending ? t("checkingHow") : ""}</span>
          </p>
        </form>
      </Card>
      {problem && problem.code !== "url_refused" && !isAboutContact ? <Notice tone="bad" title={problem.code === "too_many_requests" ? t("tooMany") : t("notNow")}>{sentence(problem.detail || problem.message)}</Notice> : null}
      {survey.error && !problem ? <Problem problem={survey.error} /> : null}
      {survey.data && !survey.isPending && (
        <Surveyed survey={survey.data} scope={scope} onScope={(one) => check(one, survey.variables.url)} isStarting={start.isPending} problem={start.error}
          onStart={(pages) => start.mutate({ urls: [survey.data.final_url], ...(survey.data.source_id !== null ? { source: survey.data.code } : {}), name: survey.data.name, config: { ...(survey.data.source_id === null && scope !== "host" ? { scope } : {}), ...(pages ? { max_pages: pages } : {}) } }, { onSuccess: ({ jobId }) => void navigate({ to: "/control/start", search: { job: jobId } }) })} />
      )}
    </>
  );
}
