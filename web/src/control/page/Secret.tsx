import { CopyButton } from "@/app/CopyButton";
import { Button } from "@/design/Button";
import { Dialog } from "@/design/Dialog";
import { Notice } from "@/design/Notice";

/** Something that is shown this once: a link, a token, a secret. */
export function Secret({ title, secret, children, onClose }: { title: string; secret: string; children: string; onClose: () => void }) {
  return (
    <Dialog isOpen title={title} onClose={onClose} actions={
      <>
        <CopyButton label="Copy" text={() => secret} />
        <Button kind="main" onClick={onClose}>I have kept it</Button>
      </>
    }>
      <div className="space-y-3">
        <p>{children}</p>
        <p data-testid="secret" className="rounded-part border border-edge bg-sunk p-3 font-mono text-sm break-all select-all">{secret}</p>
        <Notice tone="warn" title="It is shown this once">Nobody can look it up later, only make a new one.</Notice>
      </div>
    </Dialog>
  );
}
