import { useId, useLayoutEffect, useRef, type ReactNode } from "react";

/** The browser's own dialog: it keeps the focus and gives it back, closes with Escape, and needs no style of its own to be injected. */
export function Dialog({ isOpen, onClose, title, children, actions }: { isOpen: boolean; onClose: () => void; title: ReactNode; children: ReactNode; actions?: ReactNode }) {
  const shown = useRef<HTMLDialogElement>(null);
  const id = useId();
  // Before the page is painted, and before the element is taken away: only a dialog that was closed gives the focus back.
  useLayoutEffect(() => {
    const dialog = shown.current;
    if (!dialog || !isOpen) return undefined;
    if (!dialog.open) dialog.showModal();
    return () => dialog.close();
  }, [isOpen]);
  return (
    <dialog ref={shown} onClose={(event) => { if (event.target === event.currentTarget && !event.currentTarget.open) onClose(); }} aria-labelledby={id} className="m-auto w-[min(36rem,calc(100vw-2rem))] rounded-card border border-line bg-sheet p-0 text-ink shadow-card backdrop:bg-black/50">
      <div className="p-5">
        <h2 id={id} className="mb-3 text-xl">{title}</h2>
        {children}
        {actions && <div className="mt-5 flex flex-wrap justify-end gap-2">{actions}</div>}
      </div>
    </dialog>
  );
}
