import { text, tidy } from "@/control/page/asked";

/** The address that is to be explained. */
export function readAskedExplain(found: Record<string, unknown>): { url?: string } {
  return tidy({ url: text(found["url"]) });
}
