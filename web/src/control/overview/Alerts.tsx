import { Problem } from "@/app/Problem";
import { Notice } from "@/design/Notice";
import { Tag } from "@/design/Tag";
import { Moment } from "../live/Moment";
import { alerted, alertName } from "./alerted";
import { AlertMessage } from "./AlertMessage";
import { useAlerts, useHealth } from "./useOverview";
import { t } from "@/language/control/overview";
import { withParts } from "@/language/room";

const WRONG: Record<string, [state: string, said: "db" | "disk" | "writes"]> = { db: ["error", "db"], disk: ["low", "disk"], writes: ["refused", "writes"] };

/** What is not well with the machine, told as it becomes so; nothing if all is well. */
export function Health() {
  const { data } = useHealth();
  if (!data || data.status === "ok") return null;
  const checks = Object.entries(data.checks as Record<string, unknown>);
  const said = checks.flatMap(([name, state]) => {
    const known = WRONG[name];
    return known && known[0] === state ? [t(known[1])] : [];
  });
  return <Notice tone="bad" title={t("unwell")}>{said.length > 0 ? said.join(" ") : t("unwellHow")}</Notice>;
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
    <section aria-label={t("alerts")} className="space-y-3">
      {firing.map((alert) => (
        <Notice key={alert.id} tone={alert.severity === "critical" ? "bad" : "warn"} title={<span className="flex flex-wrap items-center gap-2">{alerted(alert)}<Tag tone={alert.severity === "critical" ? "bad" : "warn"}>{t(alert.severity === "critical" ? "critical" : "warning")}</Tag></span>}>
          <AlertMessage alert={alert} />
          {withParts(t("alertSince", { name: alertName(alert.name) }), { time: <Moment at={alert.since} relative /> })}
        </Notice>
      ))}
      {over.length > 0 && (
        <details className="text-sm">
          <summary className="inline-block min-h-6 text-soft underline">{firing.length === 0 ? `${t("noAlert")} ` : ""}{t("over", { count: over.length })}</summary>
          <ul className="mt-2 space-y-1">
            {over.map((alert) => <li key={alert.id}><Tag tone="good">{t("overTag")}</Tag> {alerted(alert)} <span className="text-soft">{withParts(t("ended"), { time: <Moment at={alert.resolvedAt} relative /> })}</span><AlertMessage alert={alert} /></li>)}
          </ul>
        </details>
      )}
    </section>
  );
}
