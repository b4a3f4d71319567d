import { text, tidy, whole } from "@/control/page/asked";

export interface AskedEditions {
  source?: string;
  year?: number;
}

export function readAskedEditions(found: Record<string, unknown>): AskedEditions {
  return tidy({ source: text(found["source"]), year: whole(found["year"]) });
}
