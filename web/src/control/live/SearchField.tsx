import { useRef, useState } from "react";
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

/** A box to search with: it asks when who types rests for a moment. */
export function SearchField(shown: Shown) {
  return <Typed key={shown.asked} {...shown} />;
}

function Typed({ asked, onAsk, ...rest }: Shown) {
  const [text, type] = useState(asked);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  return (
    <TextField type="search" value={text} {...rest} onChange={(event) => {
      const typed = event.target.value;
      type(typed);
      clearTimeout(timer.current);
      timer.current = setTimeout(() => onAsk(typed.trim() || undefined), WAIT_MS);
    }} />
  );
}
