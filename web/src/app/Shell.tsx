import { Link, Outlet, useLocation, useMatches, useRouterState } from "@tanstack/react-router";
import { Menu } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { signInPath } from "@/api/session";
import { buttonClass } from "@/design/Button";
import { useWords } from "@/language/LanguageContext";
import { LANGUAGES, type Language } from "@/language/words";
import { ConnectionBar } from "./ConnectionBar";
import { SignOut } from "./SignOut";
import { THEMES, useTheme, type Theme } from "./theme";
import { useMay, useSession } from "./useSession";

const PLACE = "rounded-part px-3 py-2 font-semibold text-soft no-underline hover:bg-sunk hover:text-ink aria-[current=page]:text-ink aria-[current=page]:underline aria-[current=page]:decoration-accent aria-[current=page]:decoration-2 aria-[current=page]:underline-offset-8";
const PLACES = [["/search", "nav.search"], ["/changes", "nav.changes"], ["/sources", "nav.sources"], ["/editions", "nav.editions"]] as const;

/** What stands around every page: the way home, the places, and how the page looks and speaks. */
export function Shell() {
  const { t } = useWords();
  const [isOpen, open] = useState(false);
  const isWide = useMatches({ select: (matches) => matches.some((match) => match.staticData.isWide) });
  // Tables and charts of the control room take the room that there is; text is read in short lines.
  const width = useLocation().pathname.startsWith("/control") ? "max-w-[88rem]" : "max-w-6xl";
  const main = useFocusOnArrival();
  return (
    <div className={`flex flex-col ${isWide ? "h-dvh min-h-72" : "min-h-dvh"}`}>
      <a href="#content" className="sr-only focus:not-sr-only focus:absolute focus:z-10 focus:bg-sheet focus:p-3">{t("app.skip")}</a>
      <header className="border-b border-line bg-sheet">
        <div className={`mx-auto flex w-full ${width} flex-wrap items-center gap-x-6 gap-y-2 px-4 ${isWide ? "py-2.5 short:py-0" : "py-2.5"}`}>
          <Link to="/" className="flex items-center gap-2.5 text-ink no-underline">
            <img src="/holdfast.svg" alt="" className="size-7" width="28" height="28" />
            <span className="font-serif text-lg font-semibold">{t("app.name")}</span>
          </Link>
          <button type="button" aria-expanded={isOpen} aria-controls="places" onClick={() => open(!isOpen)} className={`ml-auto inline-flex min-h-10 items-center gap-2 rounded-part border border-edge px-3 sm:hidden ${isWide ? "short:inline-flex short:min-h-8" : ""}`}>
            <Menu aria-hidden className="size-4" /> {t("app.menu")}
          </button>
          <nav id="places" aria-label={t("app.menu")} className={`${isOpen ? "flex" : `hidden ${isWide ? "not-short:sm:flex" : "sm:flex"}`} w-full flex-col gap-1 sm:w-auto sm:grow sm:flex-row sm:items-center sm:gap-1`}>
            {PLACES.map(([to, word]) => (
              <Link key={to} to={to} onClick={() => open(false)} className={PLACE}>
                {t(word)}
              </Link>
            ))}
            <Reader onLeave={() => open(false)} />
          </nav>
        </div>
      </header>
      <ConnectionBar />
      <SessionBar />
      {/* As high as the window: the footer is below it, and what loads moves nothing that is seen. */}
      <main ref={main} id="content" tabIndex={-1} className={`outline-none ${isWide ? "flex w-full grow min-h-0 flex-col" : `mx-auto min-h-dvh w-full ${width} grow px-4 py-6 sm:py-8`}`}><Outlet /></main>
      {!isWide && <Footer width={width} />}
    </div>
  );
}

/** Who follows a link by keyboard, or hears the page, arrives at what the link led to; a page that puts the focus somewhere itself is left alone. */
function useFocusOnArrival() {
  const main = useRef<HTMLElement>(null);
  const path = useRouterState({ select: (state) => state.resolvedLocation?.pathname });
  const before = useRef<string | undefined>(undefined);
  useEffect(() => {
    const isArrival = before.current !== undefined && path !== before.current;
    before.current = path;
    if (!isArrival) return;
    const focused = document.activeElement;
    if (!focused || focused === document.body || focused.closest("header")) main.current?.focus({ preventScroll: true });
  }, [path]);
  return main;
}

/** Who reads: the control room for operators, one's account, the way in and out. */
function Reader({ onLeave }: { onLeave: () => void }) {
  const { t } = useWords();
  const session = useSession().data;
  const mayWatch = useMay("watch");
  const mayExplain = useMay("explain");
  const { pathname, searchStr } = useLocation();
  return (
    <div className="flex flex-col gap-1 sm:ml-auto sm:min-h-10 sm:flex-row sm:items-center">
      {mayWatch ? <Link to="/control" onClick={onLeave} className={PLACE}>{t("app.control")}</Link> : mayExplain && <Link to="/control/explain" onClick={onLeave} className={PLACE}>{t("nav.explain")}</Link>}
      {session?.way === "session" && <a href="/account" title={session.user?.name} className={PLACE}>{t("app.account")}</a>}
      {session?.way === "session" && <SignOut className={`${PLACE} text-left`} />}
      {/* On the server's own machine nobody need sign in, and who has an account still can. */}
      {session && session.way !== "session" && <a href={signInPath(pathname, searchStr)} className={PLACE}>{t("app.signIn")}</a>}
    </div>
  );
}

/** Says on every page that the session has ended, and leads back to the page after signing in. */
function SessionBar() {
  const { t } = useWords();
  const hasEnded = useSession().data?.hasEnded ?? false;
  const { pathname, searchStr } = useLocation();
  return (
    <div role="status" className={hasEnded ? "flex flex-wrap items-center gap-x-4 gap-y-1 border-b border-warn bg-warn-wash px-4 py-1.5 text-ink" : "sr-only"}>
      {hasEnded && (
        <>
          <p className="min-w-0 grow basis-60"><strong>{t("session.ended")}</strong> {t("session.endedHow")}</p>
          <a href={signInPath(pathname, searchStr)} className={buttonClass()}>{t("app.signIn")}</a>
        </>
      )}
    </div>
  );
}

function Footer({ width }: { width: string }) {
  const { t, language, speak } = useWords();
  const [theme, choose] = useTheme();
  const session = useSession().data;
  const box = "rounded-part border border-edge bg-sheet px-2 py-1.5 text-ink";
  return (
    <footer className="border-t border-line bg-sheet">
      <div className={`mx-auto flex ${width} flex-wrap items-center gap-x-6 gap-y-3 px-4 py-4 text-sm text-soft`}>
        <span>{t("app.name")}, {t("app.tagline")}</span>
        {session?.hasReference && <a href="/docs">API</a>}
        <label className="flex items-center gap-2 sm:ml-auto">{t("app.language")}
          <select className={box} value={language} onChange={(event) => speak(event.target.value as Language)}>
            {Object.entries(LANGUAGES).map(([code, name]) => <option key={code} value={code}>{name}</option>)}
          </select>
        </label>
        <label className="flex items-center gap-2">{t("app.theme")}
          <select className={box} value={theme} onChange={(event) => choose(event.target.value as Theme)}>
            {THEMES.map((one) => <option key={one} value={one}>{t(`app.theme.${one}`)}</option>)}
          </select>
        </label>
      </div>
    </footer>
  );
}
