import { useEffect, useRef, type ReactNode } from "react";

/** The browser's own dialog: it keeps the focus, closes with Escape, and needs no style of its own to be injected. */
export function Dialog({ isOpen, onClose, title, children, actions }: { isOpen: boolean; onClose: () => void; title: ReactNode; children: ReactNode; actions?: ReactNode }) {
  const shown = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = shown.current;
    if (!dialog) return;
    if (isOpen && !dialog.open) dialog.showModal();
    if (!isOpen && dialog.open) dialog.close();
  }, [isOpen]);
  return (
    <dialog ref={shown} onClose={onClose} aria-labelledby="dialog-title" className="m-auto w-[min(36rem,calc(100vw-2rem))] rounded-card border border-line bg-sheet p-0 text-ink shadow-card backdrop:bg-black/50">
      <div className="p-5">
        <h2 id="dialog-title" className="mb-3 text-xl">{title}</h2>
        {children}
        {actions && <div className="mt-5 flex flex-wrap justify-end gap-2">{actions}</div>}
      </div>
    </dialog>
  );
}
