import type { components } from "@/api/schema";
import { duration, share } from "@/control/charts/format";
import { plain } from "@/control/page/words";
import { t } from "@/language/control/alerts";
import { spoken } from "@/language/spoken";

export type Told = Pick<components["schemas"]["AlertRecord"], "name" | "value" | "message">;

/** Say what an alert found: the server's own sentence in English, else a sentence by its name and its measurement. */
export function alerted(alert: Told): string {
  if (spoken.language === "en" || !(alert.name in t.en)) return alert.message;
  return t(alert.name, { share: share(alert.value), time: duration(alert.value) });
}

/** Name an alert. */
export function alertName(name: string): string {
  return `name.${name}` in t.en ? t.of("name", name) : plain(name);
}
