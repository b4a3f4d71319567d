import { useEffect, useState } from "react";

export const THEMES = ["system", "light", "dark", "contrast"] as const;
export type Theme = (typeof THEMES)[number];

/** The chosen appearance, kept on this device; public/theme.js sets it before the first paint. */
export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, choose] = useState<Theme>(() => THEMES.find((one) => one === localStorage.getItem("theme")) ?? "system");
  useEffect(() => {
    if (theme === "system") {
      localStorage.removeItem("theme");
      delete document.documentElement.dataset["theme"];
    } else {
      localStorage.setItem("theme", theme);
      document.documentElement.dataset["theme"] = theme;
    }
  }, [theme]);
  return [theme, choose];
}
