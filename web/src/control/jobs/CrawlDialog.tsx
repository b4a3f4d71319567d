import { Link } from "@tanstack/react-router";
import { useState, type FormEvent } from "react";
import { ApiProblem } from "@/api/problem";
import { Problem } from "@/app/Problem";
import { Button } from "@/design/Button";
import { Dialog } from "@/design/Dialog";
import { SelectField, TextArea, TextField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { linesOf } from "../sources/fields";
import { useStartCrawl } from "./useJobs";

/** A crawl of a few addresses, once: no schedule, and a source is made if their host has none. */
export function CrawlDialog({ isOpen, onClose, sources }: { isOpen: boolean; onClose: () => void; sources: { code: string; name: string }[] }) {
  const [urls, write] = useState("");
  const [source, choose] = useState("");
  const [depth, deepen] = useState("3");
  const [pages, limit] = useState("1000");
  const start = useStartCrawl();
  const problem = start.error instanceof ApiProblem ? start.error : null;
  const at = (field: string) => (problem?.field?.split(/[.[]/).includes(field) ? problem.detail || problem.message : null);
  const isAtField = ["urls", "source", "max_depth", "max_pages"].some((field) => at(field));
  function send(event: FormEvent) {
    event.preventDefault();
    start.mutate({ urls: linesOf(urls), ...(source ? { source } : {}), config: { ...(depth ? { max_depth: Number(depth) } : {}), ...(pages ? { max_pages: Number(pages) } : {}) } });
  }
  function close() {
    start.reset();
    onClose();
  }
  return (
    <Dialog isOpen={isOpen} onClose={close} title="Crawl something once">
      {start.data ? (
        <>
          <Notice tone="good" title="The crawl waits for a worker.">
            {start.data.isNewSource ? `A source ${start.data.source} was made for it.` : `It belongs to the source ${start.data.source}.`}
          </Notice>
          <p className="mt-4 flex justify-end gap-3"><Button onClick={close}>Close</Button><Link to="/control/jobs/$id" params={{ id: String(start.data.jobId) }} onClick={close} className="inline-flex min-h-10 items-center">Watch it</Link></p>
        </>
      ) : (
        <form onSubmit={send} className="space-y-4">
          <TextArea label="Addresses" hint="One on each line. The crawl begins there and follows links on the same host." rows={4} required value={urls} onChange={(event) => write(event.target.value)} problem={at("urls")} />
          <SelectField label="Source" value={source} onChange={(event) => choose(event.target.value)} problem={at("source")} hint="What is captured belongs to it.">
            <option value="">the one of the first host, made if it is new</option>
            {sources.map((one) => <option key={one.code} value={one.code}>{one.name}</option>)}
          </SelectField>
          <div className="grid gap-4 sm:grid-cols-2">
            <TextField label="Links away from a seed" type="number" min={-1} value={depth} onChange={(event) => deepen(event.target.value)} problem={at("max_depth")} hint="-1 is no limit." />
            <TextField label="Pages at most" type="number" min={1} value={pages} onChange={(event) => limit(event.target.value)} problem={at("max_pages")} />
          </div>
          {start.error && !isAtField ? <Problem problem={start.error} /> : null}
          <p className="flex justify-end gap-2"><Button onClick={close}>Leave it</Button><Button kind="main" type="submit" disabled={start.isPending}>Crawl</Button></p>
        </form>
      )}
    </Dialog>
  );
}
