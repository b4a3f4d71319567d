import { useNavigate } from "@tanstack/react-router";
import { useState, type FormEvent } from "react";
import { ApiProblem } from "@/api/problem";
import { Problem } from "@/app/Problem";
import { startRoute } from "@/app/crawlRoutes";
import { useMay } from "@/app/useSession";
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
import { useSurvey } from "./useStart";

/** From an address to a searchable website: check it, see what would be crawled, start, watch. */
export function StartPage() {
  const { job } = readAskedStart({ ...startRoute.useSearch() });
  const mayOperate = useMay("operate");
  const { data } = useManagedSources({});
  if (job) return <Progress job={job} />;
  return (
    <div className="max-w-4xl space-y-5">
      <PageHead title={data?.total === 0 ? "Add your first website" : "Add a website"}>
        Holdfast reads its robots.txt, its sitemap and its first page, and shows what it would crawl before anything is stored.
      </PageHead>
      {mayOperate ? <AddWebsite /> : <Notice title="Your role cannot add websites.">Ask an administrator to give you the role of an operator.</Notice>}
    </div>
  );
}

const CONTACT = new Set(["contact_missing", "contact_refused"]);

function AddWebsite() {
  const [address, write] = useState("");
  const [contact, reachAt] = useState("");
  const navigate = useNavigate();
  const survey = useSurvey();
  const start = useStartCrawl();
  const problem = survey.error instanceof ApiProblem ? survey.error : null;
  // The field stays once it was asked for: whoever mistyped it corrects it there.
  const [asksContact, askContact] = useState(false);
  const isAboutContact = CONTACT.has(problem?.code ?? "");
  const form = useWrongField(survey.error);
  function send(event: FormEvent) {
    event.preventDefault();
    if (!address.trim()) return;
    start.reset();
    survey.mutate({ url: address.trim(), ...(contact.trim() ? { contact: contact.trim() } : {}) }, { onError: (error) => { if (error instanceof ApiProblem && CONTACT.has(error.code)) askContact(true); } });
  }
  return (
    <>
      <Card>
        <form ref={form} onSubmit={send} className="space-y-4" aria-label="Check a website">
          <TextField label="Website address" hint="For example example.org, or the address of a part of a site." required autoFocus autoComplete="url" inputMode="url" autoCapitalize="none" spellCheck={false} maxLength={8192}
            value={address} onChange={(event) => write(event.target.value)} problem={problem?.code === "url_refused" ? sentence(problem.message) : null} />
          {asksContact && (
            <TextField label="Your contact" hint="An e-mail or web address. Every request names it, so that site owners can reach you. It is kept for later crawls." required autoFocus autoComplete="email" autoCapitalize="none" spellCheck={false} maxLength={200}
              value={contact} onChange={(event) => reachAt(event.target.value)} problem={problem?.code === "contact_refused" ? sentence(problem.message) : null} />
          )}
          <p className="flex flex-wrap items-center gap-3">
            <Button kind={survey.data ? "plain" : "main"} type="submit" disabled={survey.isPending}>{survey.isPending ? "Checking…" : "Check website"}</Button>
            <span role="status" className="text-sm text-soft">{survey.isPending ? "Reading robots.txt, sitemaps and the first page, at the site's pace. This takes up to 25 seconds." : ""}</span>
          </p>
        </form>
      </Card>
      {problem && problem.code !== "url_refused" && !isAboutContact ? <Notice tone="bad" title={problem.code === "too_many_requests" ? "You checked too many websites within a minute" : "This website cannot be crawled now"}>{sentence(problem.detail || problem.message)}</Notice> : null}
      {survey.error && !problem ? <Problem problem={survey.error} /> : null}
      {survey.data && !survey.isPending && (
        <Surveyed survey={survey.data} isStarting={start.isPending} problem={start.error}
          onStart={(pages) => start.mutate({ urls: [survey.data.final_url], ...(survey.data.source_id !== null ? { source: survey.data.code } : {}), name: survey.data.name, config: pages ? { max_pages: pages } : {} }, { onSuccess: ({ jobId }) => void navigate({ to: "/control/start", search: { job: jobId } }) })} />
      )}
    </>
  );
}
