import { useEffect, useRef, useState } from "react";
import { TextField } from "@/design/Field";

const WAIT_MS = 300;

interface Shown {
  label: string;
  /** What is asked for now; another page of the history writes it anew. */
  asked: string;
  onAsk: (text: string | undefined) => void;
  hint?: string;
  placeholder?: string;
  problem?: string | null;
}

/** A box to search with: it asks when who types rests for a moment. The box stays the same meanwhile, and keeps the focus. */
export function SearchField({ asked, onAsk, ...rest }: Shown) {
  const [text, type] = useState(asked);
  const [sent, send] = useState(asked);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const latest = useRef(onAsk);
  useEffect(() => { latest.current = onAsk; });
  // Who has left the page is not called back to it.
  useEffect(() => () => clearTimeout(timer.current), []);
  const [known, know] = useState(asked);
  if (asked !== known) {
    know(asked);
    if (asked !== sent) {
      send(asked);
      type(asked);
    }
  }
  return (
    <TextField type="search" value={text} {...rest} onChange={(event) => {
      const typed = event.target.value;
      type(typed);
      clearTimeout(timer.current);
      timer.current = setTimeout(() => {
        send(typed.trim());
        latest.current(typed.trim() || undefined);
      }, WAIT_MS);
    }} />
  );
}
