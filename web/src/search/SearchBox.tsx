import { useNavigate } from "@tanstack/react-router";
import { Search } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { buttonClass } from "@/design/Button";
import { useWords } from "@/language/LanguageContext";
import { isLongAddress } from "./asked";
import { QueryHelp } from "./QueryHelp";

interface Shown {
  start?: string;
  onAsk: (q: string) => void;
  isFirst?: boolean;
  /** The query language stands below, and what is chosen there goes into the box, beside what is typed. */
  help?: { isOpen: boolean; onToggle: (isOpen: boolean) => void };
}

/** The one box. It has the focus where it is the page's purpose; `/` brings it back from anywhere. */
export function SearchBox({ start = "", onAsk, isFirst = false, help }: Shown) {
  const { t } = useWords();
  const [typed, type] = useState(start);
  const box = useRef<HTMLInputElement>(null);
  const navigate = useNavigate();
  function ask(q: string) {
    if (isLongAddress(q)) void navigate({ to: "/page", search: { url: q } });
    else onAsk(q);
  }
  useEffect(() => {
    function pressed(event: KeyboardEvent) {
      const inside = event.target instanceof HTMLElement && event.target.closest("input, textarea, select, [contenteditable], dialog");
      if (event.key === "/" && !inside && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        box.current?.focus();
        box.current?.select();
      }
    }
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  function insert(text: string) {
    type((before) => [before.trim(), text].filter(Boolean).join(" "));
    box.current?.focus();
  }
  return (
    <>
      <form role="search" className="flex gap-2" onSubmit={(event) => { event.preventDefault(); ask(typed.trim()); }}>
        <div className="relative grow">
          <Search aria-hidden className="absolute top-1/2 left-3 size-5 -translate-y-1/2 text-soft" />
          <input ref={box} type="search" name="q" value={typed} onChange={(event) => type(event.target.value)} autoFocus={isFirst} aria-label={t("home.ask")} placeholder={t("home.ask")} autoComplete="off" spellCheck={false} maxLength={8192} className="min-h-12 w-full rounded-part border border-edge bg-sheet py-2 pr-3 pl-10 text-lg" />
        </div>
        <button type="submit" className={buttonClass("main", "min-h-12 px-5")}>{t("home.go")}</button>
      </form>
      {help && <QueryHelp {...help} onInsert={insert} />}
    </>
  );
}
