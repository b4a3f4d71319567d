import { Card } from "@/design/Card";
import { bytes, count, duration } from "../charts/format";
import { TimeChart } from "../charts/TimeChart";
import { useRunSeries, type Execution } from "./useExecution";

/** What a run did from its beginning to its end, counted step by step; nothing before it began. */
export function OverTime({ run }: { run: Execution }) {
  const { data } = useRunSeries(run);
  if (!run.started_at || (data && data.requests.every((value) => value === 0))) return null;
  const isOver = run.completed_at !== null;
  const end = data ? Date.parse(data.to) / 1000 : 0;
  // While it runs the last step is not counted to its end: it would look like a fall.
  const times = data?.timestamps.map((moment) => Date.parse(moment) / 1000).filter((begin) => isOver || begin + data.stepSeconds < end) ?? [];
  const whole = (value: number) => count(Math.round(value));
  const each = data ? `each ${duration(data.stepSeconds)}` : "";
  return (
    <Card title="Over time" className="min-h-64">
      {data && (
        <div className="grid gap-6 lg:grid-cols-2">
          <TimeChart title="Pages" isWhole caption={`Captured and failed, ${each}.`} times={times} format={whole}
            lines={[{ label: "captured", values: data.pagesCrawled }, { label: "failed", values: data.pagesFailed, tone: "bad" }]} />
          <TimeChart title="Queue" isWhole caption="Addresses that waited." times={times} format={whole}
            lines={[{ label: "addresses", values: data.queue }]} />
          <TimeChart title="Requests" isWhole caption={`Sent to servers, ${each}.`} times={times} format={whole}
            lines={[{ label: "requests", values: data.requests }]} />
          <TimeChart title="Received" caption={`From the network, ${each}.`} times={times} format={bytes}
            lines={[{ label: "received", values: data.bytesDownloaded }]} />
        </div>
      )}
    </Card>
  );
}
