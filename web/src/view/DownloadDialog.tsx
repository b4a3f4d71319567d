import { Button, buttonClass } from "@/design/Button";
import { Dialog } from "@/design/Dialog";
import { useWords } from "@/language/LanguageContext";
import type { CaptureView } from "./useCapture";

/** What can be taken away: the page with its parts, its bytes alone, or the whole crawl. */
export function DownloadDialog({ view, onClose }: { view: CaptureView; onClose: () => void }) {
  const { t } = useWords();
  return (
    <Dialog isOpen onClose={onClose} title={t("view.download")} actions={<Button onClick={onClose}>{t("app.close")}</Button>}>
      <ul className="space-y-4">
        <Way href={`/api/snapshots/${view.snapshotId}/wacz`} name={t("download.page")} text={t("download.pageText")} />
        <Way isElsewhere href={view.rawUrl} name={t("download.bytes")} text={t("download.bytesText")} />
        <Way href={`/api/executions/${view.jobId}/wacz`} name={t("download.crawl", { name: view.jobName })} text={t("download.crawlText")} />
      </ul>
    </Dialog>
  );
}

function Way({ href, name, text, isElsewhere = false }: { href: string; name: string; text: string; isElsewhere?: boolean }) {
  return (
    <li>
      {/* From another host a browser shows it instead of keeping it: beside this page, not in its place. */}
      <a href={href} download {...(isElsewhere ? { target: "_blank", rel: "noreferrer" } : {})} className={buttonClass("plain", "break-all")}>{name}</a>
      <p className="mt-1 text-sm text-soft">{text}</p>
    </li>
  );
}
