import { CopyButton } from "@/app/CopyButton";
import { Button } from "@/design/Button";
import { Dialog } from "@/design/Dialog";
import { Notice } from "@/design/Notice";
import { t } from "@/language/control/common";

/** Something that is shown this once: a link, a token, a secret. */
export function Secret({ title, secret, children, onClose }: { title: string; secret: string; children: string; onClose: () => void }) {
  return (
    <Dialog isOpen title={title} onClose={onClose} actions={
      <>
        <CopyButton label={t("copy")} text={() => secret} />
        <Button kind="main" onClick={onClose}>{t("copied")}</Button>
      </>
    }>
      <div className="space-y-3">
        <p>{children}</p>
        <p data-testid="secret" className="rounded-part border border-edge bg-sunk p-3 font-mono text-sm break-all select-all">{secret}</p>
        <Notice tone="warn" title={t("copyNow")}>{t("copyHow")}</Notice>
      </div>
    </Dialog>
  );
}
