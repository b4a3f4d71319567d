import { useState } from "react";
import { Link } from "@tanstack/react-router";
import { Problem } from "@/app/Problem";
import { Button } from "@/design/Button";
import { DataTable } from "@/design/DataTable";
import { SelectField } from "@/design/Field";
import { Tag, type Tone } from "@/design/Tag";
import { count } from "../charts/format";
import { useNow } from "../live/useNow";
import { circuitWord, domainWord } from "../domains/states";
import { whyItWaits } from "../overview/waiting";
import { hasOnlyEnded } from "./outcomes";
import { useHosts, type Host } from "./useExecution";
import { t } from "@/language/control/executions";

const TONES: Record<string, Tone> = { active: "accent", ready: "good", resting: "plain", paused: "warn", unreachable: "bad", forbidden: "bad" };

/** The hosts of a run: what each has done, and what it waits for. */
export function Hosts({ id, isRunning }: { id: number; isRunning: boolean }) {
  const [order, choose] = useState<"due" | "met">(isRunning ? "due" : "met");
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useHosts(id, order, isRunning);
  const now = useNow();
  const rows = data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <div className="space-y-3">
      <div className="max-w-72">
        <SelectField label={t("which")} value={order} onChange={(event) => choose(event.target.value as "due" | "met")}>
          <option value="due">{t("due")}</option>
          <option value="met">{t("met")}</option>
        </SelectField>
      </div>
      {error && !data ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      <div className="min-h-48">
        <DataTable caption={t("hostsCaption")} rows={rows} keyOf={(host) => host.domain} empty={<p className="text-soft">{t(data ? (order === "due" ? "nothingQueued" : "noHosts") : "loading")}</p>} columns={[
          { head: t("host"), cell: (host) => <Link to="/control/executions/$id" params={{ id: String(id) }} search={{ tab: "urls", host: host.domain }} className="inline-block min-h-6 break-all">{host.domain}</Link> },
          { head: t("state"), cell: (host) => <State host={host} now={now} isRunning={isRunning} /> },
          { head: t("queued"), isNumber: true, cell: (host) => count(host.pending) },
          { head: t("captured"), isNumber: true, cell: (host) => count(host.completed) },
          { head: t("failed"), isNumber: true, cell: (host) => count(host.failed) },
          { head: t("leftOut"), isNumber: true, cell: (host) => count(host.ruledOut) },
          { head: t("delay"), isNumber: true, cell: (host) => (host.crawlDelay === null ? t("ofSource") : `${host.crawlDelay} s`) },
        ]} />
      </div>
      {hasNextPage && <Button disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>{t("moreHosts", { count: rows.length })}</Button>}
    </div>
  );
}

function State({ host, now, isRunning }: { host: Host; now: number; isRunning: boolean }) {
  // A run that has ended asks nothing: "ready" would promise that it does.
  if (hasOnlyEnded(host.state, isRunning)) return <Tag tone="plain">{t("hostEnded")}</Tag>;
  const why = host.pending > 0 ? whyItWaits(host, now) : null;
  return (
    <>
      <Tag tone={TONES[host.state] ?? "plain"}>{domainWord(host.state)}</Tag>{host.circuit !== "closed" && <> <Tag tone="bad">{t("circuit", { state: circuitWord(host.circuit) })}</Tag></>}
      {why && <span className="mt-0.5 block text-sm text-soft">{why}</span>}
    </>
  );
}
