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
import { t } from "@/language/control/jobs";

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
    <Dialog isOpen={isOpen} onClose={close} title={t("dialog")}>
      {start.data ? (
        <>
          <Notice tone="good" title={t("started")}>
            {t(start.data.isNewSource ? "newSource" : "ofSource", { source: start.data.source })}
          </Notice>
          <p className="mt-4 flex justify-end gap-3"><Button onClick={close}>{t("close")}</Button><Link to="/control/jobs/$id" params={{ id: String(start.data.jobId) }} onClick={close} className="inline-flex min-h-10 items-center">{t("watch")}</Link></p>
        </>
      ) : (
        <form onSubmit={send} className="space-y-4">
          <TextArea label={t("addresses")} hint={t("addressesHint")} rows={4} required value={urls} onChange={(event) => write(event.target.value)} problem={at("urls")} />
          <SelectField label={t("source")} value={source} onChange={(event) => choose(event.target.value)} problem={at("source")} hint={t("belongs")}>
            <option value="">{t("ofFirstHost")}</option>
            {sources.map((one) => <option key={one.code} value={one.code}>{one.name}</option>)}
          </SelectField>
          <div className="grid gap-4 sm:grid-cols-2">
            <TextField label={t("depth")} type="number" min={-1} value={depth} onChange={(event) => deepen(event.target.value)} problem={at("max_depth")} hint={t("depthHint")} />
            <TextField label={t("limit")} type="number" min={1} value={pages} onChange={(event) => limit(event.target.value)} problem={at("max_pages")} />
          </div>
          {start.error && !isAtField ? <Problem problem={start.error} /> : null}
          <p className="flex justify-end gap-2"><Button onClick={close}>{t("cancel")}</Button><Button kind="main" type="submit" disabled={start.isPending}>{t("crawl")}</Button></p>
        </form>
      )}
    </Dialog>
  );
}
