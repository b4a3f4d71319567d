import { useEffect, useState } from "react";
import { Button } from "@/design/Button";
import { useWords } from "@/language/LanguageContext";
import { copyText } from "./copyText";

const SHOWN_MS = 4000;

/** Takes a text to the clipboard, and says whether it is there. */
export function CopyButton({ text, label, name, className = "", kind }: { text: () => string; label: string; name?: string; className?: string; kind?: "bare" }) {
  const { t } = useWords();
  const [done, setDone] = useState<"copied" | "failed" | null>(null);
  useEffect(() => {
    if (!done) return undefined;
    const timer = setTimeout(() => setDone(null), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [done]);
  const copy = async () => setDone((await copyText(text())) ? "copied" : "failed");
  return (
    <>
      <Button {...(kind ? { kind } : {})} className={className} aria-label={name ? `${label}: ${name}` : undefined} onClick={() => void copy()}>{done === "copied" ? t("app.copied") : label}</Button>
      <span role="status" className={done === "failed" ? "text-sm text-bad" : "sr-only"}>{done === "copied" ? t("app.copied") : done === "failed" ? t("app.copyFailed") : ""}</span>
    </>
  );
}
