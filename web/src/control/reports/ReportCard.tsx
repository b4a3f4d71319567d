import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Problem } from "@/app/Problem";
import { useMay } from "@/app/useSession";
import { Done, type Deed } from "@/control/page/Done";
import { Facts } from "@/control/page/Facts";
import { Moment } from "@/control/live/Moment";
import { Button, buttonClass } from "@/design/Button";
import { Card } from "@/design/Card";
import { SelectField, TextArea } from "@/design/Field";
import { STATUSES } from "./asked";
import { useReport, useTriage, type Report } from "./useReports";
import { t } from "@/language/control/reports";
import { t as common } from "@/language/control/common";

/** One report: what was said, the page it is about, and what was found out. */
export function ReportCard({ id }: { id: number }) {
  const { data, error, refetch } = useReport(id);
  const mayTakeDown = useMay("administer");
  const [deed, setDeed] = useState<Deed | null>(null);
  if (error) return <Problem problem={error} onAgain={() => void refetch()} />;
  if (!data) return <p role="status" className="min-h-72 text-soft">{common("loading")}</p>;
  return (
    <div>
      <Done deed={deed} onClose={() => setDeed(null)} />
      <Card title={t("report", { id: String(data.reportId), category: t.of("category", data.category) })}>
        <p className="mb-4 break-words whitespace-pre-wrap">{data.description}</p>
        <Facts facts={[
          [t("sent"), <Moment key="sent" at={data.createdAt} />],
          [t("by"), data.reporterEmail ?? t("anonymous")],
          data.originalUrl ? [t("address"), <span key="about" className="break-all">{data.originalUrl}</span>] : null,
          data.pageUrl ? [t("seenAt"), <span key="page" className="break-all">{data.pageUrl}</span>] : null,
        ]} />
        <p className="mt-3 flex flex-wrap gap-2">
          {data.snapshotId !== null && <a href={`/api/snapshots/raw/${data.snapshotId}`} className={buttonClass()}>{t("openCapture")}</a>}
          {data.originalUrl && <Link to="/control/explain" search={{ url: data.originalUrl }} className={buttonClass()}>{t("explain")}</Link>}
          {mayTakeDown && (data.snapshotId !== null || data.originalUrl) && <Link to="/control/takedowns" search={{ subject: data.snapshotId !== null ? String(data.snapshotId) : data.originalUrl ?? "" }} className={buttonClass()}>{t("takeDown")}</Link>}
        </p>
        <Triage key={data.updatedAt} report={data} onDone={setDeed} />
      </Card>
    </div>
  );
}

function Triage({ report, onDone }: { report: Report; onDone: (deed: Deed) => void }) {
  const triage = useTriage(report.reportId);
  const [status, setStatus] = useState(report.status);
  const [notes, setNotes] = useState(report.notes ?? "");
  const isChanged = status !== report.status || notes !== (report.notes ?? "");
  async function save(to: Report["status"]) {
    const was = { status: report.status, notes: report.notes ?? "" };
    await triage.mutateAsync({ status: to, notes });
    onDone({ title: t(`isNow.${to}`, { id: String(report.reportId) }), undo: () => triage.mutateAsync(was) });
  }
  return (
    <form className="mt-5 space-y-4 border-t border-line pt-4" onSubmit={(event) => { event.preventDefault(); save(status).catch(() => undefined); }}>
      <SelectField label={t("state")} value={status} onChange={(event) => setStatus(event.target.value as Report["status"])}>
        {STATUSES.map((one) => <option key={one} value={one}>{t(`status.${one}`)}</option>)}
      </SelectField>
      <TextArea label={t("notes")} rows={4} value={notes} onChange={(event) => setNotes(event.target.value)} hint={t("notesHow")} />
      {triage.error ? <Problem problem={triage.error} /> : null}
      <p className="flex flex-wrap gap-2">
        <Button type="submit" kind="main" disabled={!isChanged || triage.isPending}>{triage.isPending ? t("saving") : t("save")}</Button>
        {report.status !== "resolved" && <Button disabled={triage.isPending} onClick={() => { save("resolved").catch(() => undefined); }}>{t("saveResolved")}</Button>}
      </p>
    </form>
  );
}
