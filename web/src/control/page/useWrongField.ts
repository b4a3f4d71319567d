import { useEffect, useRef } from "react";

/** A form whose first wrong field has the focus as soon as an answer names it: who types need not look for it. */
export function useWrongField(error: Error | null) {
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (error) form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [error]);
  return form;
}
