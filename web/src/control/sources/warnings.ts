import { t } from "@/language/control/sources";
import { spoken } from "@/language/spoken";

/** Say a warning about a configuration: in the server's words in English, else in a sentence by its field; null for a field without one. */
export function warningText(warning: string): string | null {
  if (spoken.language === "en") return warning;
  const [, field = "", value = ""] = /^(\w+): (\S*)/.exec(warning) ?? [];
  const name = field === "max_depth" && value === "0" ? "max_depth.0" : field;
  return `warning.${name}` in t.en ? t.of("warning", name) : null;
}
