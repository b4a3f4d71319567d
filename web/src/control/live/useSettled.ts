import { useEffect, useState } from "react";

/** Return a value once it has stayed the same for a while: what is being typed is not asked for letter by letter. */
export function useSettled<T>(value: T, ms: number): T {
  const text = JSON.stringify(value);
  const [settled, settle] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => settle(text), ms);
    return () => clearTimeout(timer);
  }, [text, ms]);
  return JSON.parse(settled) as T;
}
