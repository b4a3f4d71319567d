import { useEffect, useRef } from "react";

/** Go from result to result with j and k, or the arrows once one has the focus; Enter opens what has it. */
export function useKeys() {
  const links = useRef(new Map<number, HTMLAnchorElement>());
  useEffect(() => {
    function pressed(event: KeyboardEvent) {
      if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
      if (event.target instanceof HTMLElement && event.target.closest("input, textarea, select, [contenteditable], dialog")) return;
      const all = [...links.current].sort(([one], [other]) => one - other).map(([, link]) => link);
      const here = all.findIndex((link) => link === document.activeElement);
      const to = nextPlace(event.key, here, all.length);
      if (to === null) return;
      event.preventDefault();
      all[to]?.focus();
    }
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  return (at: number) => (link: HTMLAnchorElement | null) => {
    if (link) links.current.set(at, link);
    else links.current.delete(at);
  };
}

/** Where a key leads among so many results from the one that has the focus (-1: none); null if it leads nowhere. */
export function nextPlace(key: string, here: number, count: number): number | null {
  if (count === 0) return null;
  const isArrow = key === "ArrowDown" || key === "ArrowUp";
  // Without a result in focus the arrows scroll the page, as everywhere.
  if (isArrow && here < 0) return null;
  if (key === "j" || key === "ArrowDown") return Math.min(here + 1, count - 1);
  if (key === "k" || key === "ArrowUp") return Math.max(here - 1, 0);
  return null;
}
