import { Card } from "@/design/Card";
import { bytes, count, duration } from "../charts/format";
import { TimeChart } from "../charts/TimeChart";
import { useRunSeries, type Execution } from "./useExecution";
import { t } from "@/language/control/executions";

/** What a run did from its beginning to its end, counted step by step; nothing before it began. */
export function OverTime({ run }: { run: Execution }) {
  const { data } = useRunSeries(run);
  if (!run.started_at || (data && data.requests.every((value) => value === 0))) return null;
  const isOver = run.completed_at !== null;
  const end = data ? Date.parse(data.to) / 1000 : 0;
  // While it runs the last step is not counted to its end: it would look like a fall.
  const times = data?.timestamps.map((moment) => Date.parse(moment) / 1000).filter((begin) => isOver || begin + data.stepSeconds < end) ?? [];
  const whole = (value: number) => count(Math.round(value));
  const each = data ? t("each", { time: duration(data.stepSeconds) }) : "";
  return (
    <Card title={t("overTime")} className="min-h-64">
      {data && (
        <div className="grid gap-6 lg:grid-cols-2">
          <TimeChart title={t("pages")} isWhole caption={t("capturedFailed", { each })} times={times} format={whole}
            lines={[{ label: t("capturedNote"), values: data.pagesCrawled }, { label: t("failedLine"), values: data.pagesFailed, tone: "bad" }]} />
          <TimeChart title={t("queue")} isWhole caption={t("queueHow")} times={times} format={whole}
            lines={[{ label: t("addressesLine"), values: data.queue }]} />
          <TimeChart title={t("requests")} isWhole caption={t("sent", { each })} times={times} format={whole}
            lines={[{ label: t("requestsLine"), values: data.requests }]} />
          <TimeChart title={t("received")} isWhole caption={t("fromNetwork", { each })} times={times} format={bytes}
            lines={[{ label: t("receivedLine"), values: data.bytesDownloaded }]} />
        </div>
      )}
    </Card>
  );
}
