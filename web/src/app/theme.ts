import { useEffect, useState } from "react";
import { keep, readKept } from "./kept";

export const THEMES = ["system", "light", "dark", "contrast"] as const;
export type Theme = (typeof THEMES)[number];

/** The chosen appearance, kept on this device; public/theme.js sets it before the first paint. */
export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, choose] = useState<Theme>(() => THEMES.find((one) => one === readKept("theme")) ?? "system");
  useEffect(() => {
    keep("theme", theme === "system" ? null : theme);
    if (theme === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
  }, [theme]);
  return [theme, choose];
}
