import { Problem } from "@/app/Problem";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { Moment } from "../live/Moment";
import { useAlerts, useHealth } from "./useOverview";

const WRONG: Record<string, Record<string, string>> = {
  db: { error: "The database does not answer." },
  disk: { low: "A disk is nearly full: crawls stop writing until there is room." },
  writes: { refused: "The database refuses writes." },
};

/** What is not well with the machine, told as it becomes so; nothing if all is well. */
export function Health() {
  const { data } = useHealth();
  if (!data || data.status === "ok") return null;
  const checks = Object.entries(data.checks as Record<string, unknown>);
  const said = checks.flatMap(([name, state]) => WRONG[name]?.[String(state)] ?? []);
  return <Notice tone="bad" title="The archive is not well.">{said.length > 0 ? said.join(" ") : "A part of it does not answer; look at the health page."}</Notice>;
}

/** What was measured to be wrong: those that hold first, then a few that are over. */
export function Alerts() {
  const { data, error, refetch } = useAlerts();
  const firing = data?.items.filter((alert) => alert.state === "firing") ?? [];
  const over = data?.items.filter((alert) => alert.state === "resolved").slice(0, 5) ?? [];
  // That nothing is heard of alerts is no sign that there are none.
  if (error && !data) return <Problem problem={error} onAgain={() => void refetch()} />;
  if (firing.length === 0 && over.length === 0) return null;
  return (
    <section aria-label="Alerts" className="space-y-3">
      {firing.map((alert) => (
        <Notice key={alert.id} tone={alert.severity === "critical" ? "bad" : "warn"} title={<span className="flex flex-wrap items-center gap-2">{alert.message}<Tag tone={alert.severity === "critical" ? "bad" : "warn"}>{alert.severity}</Tag></span>}>
          {alert.name.replaceAll("_", " ")}, since <Moment at={alert.since} relative />
        </Notice>
      ))}
      {over.length > 0 && (
        <details className="text-sm">
          <summary className="inline-block min-h-6 text-soft underline">{firing.length === 0 ? "No alert holds. " : ""}{over.length} that {over.length === 1 ? "is" : "are"} over</summary>
          <ul className="mt-2 space-y-1">
            {over.map((alert) => <li key={alert.id}><Tag tone="good">over</Tag> {alert.message} <span className="text-soft">ended <Moment at={alert.resolvedAt} relative /></span></li>)}
          </ul>
        </details>
      )}
    </section>
  );
}
