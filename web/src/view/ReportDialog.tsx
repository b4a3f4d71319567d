import { useState } from "react";
import { api, body } from "@/api/client";
import { ApiProblem } from "@/api/problem";
import type { components } from "@/api/schema";
import { useDeed } from "@/api/useDeed";
import { Problem } from "@/app/Problem";
import { Button } from "@/design/Button";
import { Dialog } from "@/design/Dialog";
import { SelectField, TextArea, TextField } from "@/design/Field";
import { Notice } from "@/design/Notice";
import { useWords } from "@/language/LanguageContext";
import type { CaptureView } from "./useCapture";

type Form = components["schemas"]["ReportForm"];
const CATEGORIES = ["broken_snapshot", "incorrect_metadata", "missing_snapshot", "takedown", "general_feedback"] as const;

/** What has a box of its own; whatever else is wrong is said below. */
const FIELDS = ["description", "reporterEmail"] as const;

/** POST /api/reports */
function useReport() {
  return useDeed({ mutationFn: (form: Form) => body(api.POST("/api/reports", { body: form })) });
}

/** Tell who runs the archive that something is wrong with a capture. */
export function ReportDialog({ view, onClose }: { view: CaptureView; onClose: () => void }) {
  const { t } = useWords();
  const [category, choose] = useState<Form["category"]>("broken_snapshot");
  const [text, write] = useState("");
  const [email, sign] = useState("");
  const report = useReport();
  const field = report.error instanceof ApiProblem ? FIELDS.find((one) => one === (report.error as ApiProblem).field) : undefined;
  const send = () => report.mutate({ category, description: text, snapshotId: view.snapshotId, originalUrl: view.url.slice(0, 2000), ...(email ? { reporterEmail: email } : {}) });
  if (report.isSuccess) {
    return <Dialog isOpen onClose={onClose} title={t("view.report")} actions={<Button kind="main" onClick={onClose}>{t("app.close")}</Button>}><Notice tone="good" title={t("report.thanks")}>{t("report.thanksHow")}</Notice></Dialog>;
  }
  return (
    <Dialog isOpen onClose={onClose} title={t("view.report")}>
      <form className="space-y-4" onSubmit={(event) => { event.preventDefault(); send(); }}>
        <SelectField label={t("report.category")} value={category} onChange={(event) => choose(event.target.value as Form["category"])}>
          {CATEGORIES.map((one) => <option key={one} value={one}>{t(`report.${one}`)}</option>)}
        </SelectField>
        <TextArea label={t("report.what")} hint={t("report.whatHint")} rows={5} required minLength={20} maxLength={4000} value={text} onChange={(event) => write(event.target.value)} problem={field === "description" ? report.error?.message : null} />
        <TextField label={t("report.email")} hint={t("report.emailHint")} type="email" autoComplete="email" value={email} onChange={(event) => sign(event.target.value)} problem={field === "reporterEmail" ? report.error?.message : null} />
        {report.error && !field ? <Problem problem={report.error} /> : null}
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>{t("app.cancel")}</Button>
          <Button kind="main" type="submit" disabled={report.isPending}>{t("report.send")}</Button>
        </div>
      </form>
    </Dialog>
  );
}
