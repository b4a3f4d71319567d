import { useNavigate } from "@tanstack/react-router";
import { Problem } from "@/app/Problem";
import { Card, Placeholder } from "@/design/Card";
import { SelectField } from "@/design/Field";
import { perSecond, shares } from "../charts/columns";
import { bytes, count, share } from "../charts/format";
import { readSpan, SPANS } from "../charts/span";
import { TimeChart } from "../charts/TimeChart";
import { useSeries, wholeSteps } from "./useOverview";

/** What all crawls did over time. */
export function Charts({ hours }: { hours: number }) {
  const navigate = useNavigate();
  const { data, error, refetch } = useSeries(hours);
  return (
    <Card title="Over time" actions={
      <SelectField label="Span" hideLabel value={hours} onChange={(event) => void navigate({ to: "/control", search: readSpan({ hours: event.target.value }), replace: true })}>
        {SPANS.map(([value, said]) => <option key={value} value={value}>{said}</option>)}
      </SelectField>
    }>
      {error && !data ? <Problem problem={error} onAgain={() => void refetch()} /> : null}
      <div className="grid min-h-[62rem] content-start gap-6 lg:min-h-[32rem] lg:grid-cols-2">{data ? <Pictures data={data} /> : <Placeholder lines={8} />}</div>
    </Card>
  );
}

/** The four pictures of a span; the page of a run shows the same of that run alone. */
export function Pictures({ data }: { data: NonNullable<ReturnType<typeof useSeries>["data"]> }) {
  const { times, step } = wholeSteps(data);
  const rate = (value: number) => (value >= 10 ? count(Math.round(value)) : value.toFixed(1));
  return (
    <>
      <TimeChart title="Pages a second" caption="Pages captured, and those that failed." times={times} format={rate}
        lines={[{ label: "captured", values: perSecond(data.pagesCrawled, step) }, { label: "failed", values: perSecond(data.pagesFailed, step), tone: "bad" }]} />
      <TimeChart title="Success" caption="The share of pages that could be captured." times={times} format={share} most={1}
        lines={[{ label: "captured", values: shares(data.pagesCrawled, data.pagesFailed), tone: "good" }]} />
      <TimeChart title="Bytes a second" caption="What came from the network." times={times} format={(value) => bytes(value)}
        lines={[{ label: "downloaded", values: perSecond(data.bytesDownloaded, step) }]} />
      <TimeChart title="Queue" isWhole caption="Addresses that waited, and hosts with something to ask for." times={times} format={(value) => count(Math.round(value))}
        lines={[{ label: "addresses", values: data.queue }, { label: "hosts", values: data.domainsWaiting, tone: "warn" }]} />
    </>
  );
}
