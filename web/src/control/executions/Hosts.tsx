import { useState } from "react";
import { Link } from "@tanstack/react-router";
import { Problem } from "@/app/Problem";
import { Button } from "@/design/Button";
import { DataTable } from "@/design/DataTable";
import { SelectField } from "@/design/Field";
import { Tag, type Tone } from "@/design/Tag";
import { count } from "../charts/format";
import { useNow } from "../live/useNow";
import { whyItWaits } from "../overview/waiting";
import { useHosts, type Host } from "./useExecution";

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
        <SelectField label="Which" value={order} onChange={(event) => choose(event.target.value as "due" | "met")}>
          <option value="due">with something queued, next first</option>
          <option value="met">all that it met</option>
        </SelectField>
      </div>
      {error && !data ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      <div className="min-h-48">
        <DataTable caption="Hosts of this run" rows={rows} keyOf={(host) => host.domain} empty={<p className="text-soft">{data ? (order === "due" ? "Nothing is queued." : "It has met no host.") : "Looking for hosts…"}</p>} columns={[
          { head: "Host", cell: (host) => <Link to="/control/executions/$id" params={{ id: String(id) }} search={{ tab: "urls", host: host.domain }} className="inline-block min-h-6 break-all">{host.domain}</Link> },
          { head: "State", cell: (host) => <State host={host} now={now} /> },
          { head: "Queued", isNumber: true, cell: (host) => count(host.pending) },
          { head: "Captured", isNumber: true, cell: (host) => count(host.completed) },
          { head: "Failed", isNumber: true, cell: (host) => count(host.failed) },
          { head: "Left out", isNumber: true, cell: (host) => count(host.ruledOut) },
          { head: "Delay", isNumber: true, cell: (host) => (host.crawlDelay === null ? "the source's" : `${host.crawlDelay} s`) },
        ]} />
      </div>
      {hasNextPage && <Button disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>More hosts ({count(rows.length)} shown)</Button>}
    </div>
  );
}

function State({ host, now }: { host: Host; now: number }) {
  const why = host.pending > 0 ? whyItWaits(host, now) : null;
  return (
    <>
      <Tag tone={TONES[host.state] ?? "plain"}>{host.state}</Tag>{host.circuit !== "closed" && <> <Tag tone="bad">circuit {host.circuit.replace("_", " ")}</Tag></>}
      {why && <span className="mt-0.5 block text-sm text-soft">{why}</span>}
    </>
  );
}
