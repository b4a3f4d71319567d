import type { UseMutationResult } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { ApiProblem } from "@/api/problem";
import { Problem } from "@/app/Problem";
import { Button } from "@/design/Button";
import { Dialog } from "@/design/Dialog";
import { SelectField, TextField } from "@/design/Field";
import type { FeedDeed } from "./useFeeds";
import { t } from "@/language/control/feeds";
import { t as common } from "@/language/control/common";

interface Shown {
  isOpen: boolean;
  onClose: () => void;
  sources: { code: string; name: string }[];
  /** The source that the page is about. */
  chosen: string;
  act: UseMutationResult<string, Error, FeedDeed>;
}

/** A feed or a sitemap that is not found by itself. */
export function AddFeed({ isOpen, onClose, sources, chosen, act }: Shown) {
  const [source, choose] = useState("");
  const [url, write] = useState("");
  const [kind, be] = useState<"feed" | "sitemap">("feed");
  const owner = source || chosen || sources[0]?.code || "";
  const problem = act.variables?.deed === "add" ? act.error : null;
  const at = (field: string) => (problem instanceof ApiProblem && problem.field === field ? problem.detail || problem.message : null);
  function send(event: FormEvent) {
    event.preventDefault();
    act.mutate({ deed: "add", source: owner, url, kind }, { onSuccess: () => { write(""); onClose(); } });
  }
  return (
    <Dialog isOpen={isOpen} onClose={onClose} title={t("add")}>
      <form onSubmit={send} className="space-y-4">
        <SelectField label={t("source")} value={owner} onChange={(event) => choose(event.target.value)} problem={at("source")}>
          {sources.map((one) => <option key={one.code} value={one.code}>{one.name}</option>)}
        </SelectField>
        <TextField label={t("address")} type="url" required value={url} onChange={(event) => write(event.target.value)} problem={at("url")} hint={t("addressHow")} />
        <SelectField label={t("kind")} value={kind} onChange={(event) => be(event.target.value as "feed" | "sitemap")}>
          <option value="feed">{t("kind.feed")}</option><option value="sitemap">{t("kind.sitemap")}</option>
        </SelectField>
        {problem && !at("source") && !at("url") ? <Problem problem={problem} /> : null}
        <p className="flex justify-end gap-2"><Button onClick={onClose}>{common("cancel")}</Button><Button kind="main" type="submit" disabled={act.isPending || !owner}>{t("addIt")}</Button></p>
      </form>
    </Dialog>
  );
}
