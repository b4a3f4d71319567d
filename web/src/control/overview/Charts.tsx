import { useNavigate } from "@tanstack/react-router";
import { Problem } from "@/app/Problem";
import { Card, Placeholder } from "@/design/Card";
import { SelectField } from "@/design/Field";
import { perSecond, shares } from "../charts/columns";
import { bytes, count, rate, share } from "../charts/format";
import { HOURS, readSpan } from "../charts/span";
import { TimeChart } from "../charts/TimeChart";
import { useSeries, wholeSteps } from "./useOverview";
import { t as said } from "@/language/control/common";
import { t } from "@/language/control/overview";

/** What all crawls did over time. */
export function Charts({ hours }: { hours: number }) {
  const navigate = useNavigate();
  const { data, error, refetch } = useSeries(hours);
  return (
    <Card title={t("overTime")} actions={
      <SelectField label={t("span")} hideLabel value={hours} onChange={(event) => void navigate({ to: "/control", search: readSpan({ hours: event.target.value }), replace: true })}>
        {HOURS.map((value) => <option key={value} value={value}>{said(`span.${value}`)}</option>)}
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
  return (
    <>
      <TimeChart title={t("pagesSecond")} caption={t("pagesSecondHow")} times={times} format={rate}
        lines={[{ label: t("captured"), values: perSecond(data.pagesCrawled, step) }, { label: t("failedLine"), values: perSecond(data.pagesFailed, step), tone: "bad" }]} />
      <TimeChart title={t("success")} caption={t("successHow")} times={times} format={share} most={1}
        lines={[{ label: t("captured"), values: shares(data.pagesCrawled, data.pagesFailed), tone: "good" }]} />
      <TimeChart title={t("bytesSecond")} isWhole caption={t("bytesHow")} times={times} format={(value) => bytes(value)}
        lines={[{ label: t("downloaded"), values: perSecond(data.bytesDownloaded, step) }]} />
      <TimeChart title={t("queue")} isWhole caption={t("queueHow")} times={times} format={(value) => count(Math.round(value))}
        lines={[{ label: t("addresses"), values: data.queue }, { label: t("hostsLine"), values: data.domainsWaiting, tone: "warn" }]} />
    </>
  );
}
