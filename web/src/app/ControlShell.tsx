import { Link, Outlet, useLocation } from "@tanstack/react-router";
import { ChevronDown } from "lucide-react";
import { useEffect, useRef, type ReactNode } from "react";
import { leaveForSignIn, signInPath, type Permission, type Session } from "@/api/session";
import { PageHead } from "@/control/page/PageHead";
import { buttonClass } from "@/design/Button";
import { Notice } from "@/design/Notice";
import { Problem } from "./Problem";
import { SignOut } from "./SignOut";
import { menuFor, needsOf, placeOf, type Part } from "./controlMenu";
import { useSession } from "./useSession";
import { useWords } from "@/language/LanguageContext";
import { t } from "@/language/control/common";
import { t as menu } from "@/language/control/menu";

/** What stands around every page of the control room: its menu, for who may use it; the way to sign in for everybody else. */
export function ControlShell() {
  const session = useSession();
  const { pathname } = useLocation();
  // The pages are mounted anew in another language: plain functions say their sentences.
  const { language } = useWords();
  // A question that fails later on takes nobody's page away: the next one that is refused leads to the sign-in.
  if (session.isError && !session.data) return <Problem problem={session.error} onAgain={() => void session.refetch()} />;
  if (!session.data) return <div className="min-h-[60vh]" aria-busy="true" />;
  if (!session.data.authenticated) return <SignInFirst />;
  const { permissions } = session.data;
  const needs = needsOf(pathname);
  const place = placeOf(pathname);
  const page = permissions.includes(needs) ? <Outlet /> : <NotForYou session={session.data} needs={needs} name={place ? menu(place.name) : t("controlRoom")} />;
  // Members may explain addresses; the rest of the room is not for them.
  if (!permissions.includes("watch")) return <div key={language}>{page}</div>;
  return <Room key={language} parts={menuFor(permissions)} mayChange={permissions.includes("operate")}>{page}</Room>;
}

function SignInFirst() {
  useEffect(leaveForSignIn, []);
  const { pathname, searchStr } = useLocation();
  return (
    <Notice title={t("signInTitle")} actions={<a href={signInPath(pathname, searchStr)} className={buttonClass("main")}>{t("signIn")}</a>}>{t("signInText")}</Notice>
  );
}

const ROLES: Partial<Record<Permission, "administrators" | "members">> = { administer: "administrators", explain: "members" };

function NotForYou({ session, needs, name }: { session: Session; needs: Permission; name: string }) {
  return (
    <>
      <PageHead title={name} />
      <Notice tone="warn" title={t("notForYou", { role: t(ROLES[needs] ?? "operators") })} actions={<>{session.way === "session" && <SignOut className={buttonClass("main")} />}<Link to="/" className={buttonClass()}>{t("toArchive")}</Link></>}>
        {t("signedInAs", { name: session.user?.name ?? "", role: session.user?.role ?? "" })}
      </Notice>
    </>
  );
}

function Room({ parts, mayChange, children }: { parts: readonly Part[]; mayChange: boolean; children: ReactNode }) {
  const { pathname } = useLocation();
  const here = placeOf(pathname);
  const disclosure = useRef<HTMLDetailsElement>(null);
  // On a phone the menu lies over the page: it closes when a place was chosen.
  useEffect(() => {
    if (disclosure.current) disclosure.current.open = false;
  }, [pathname]);
  return (
    <div className="lg:grid lg:grid-cols-[11rem_minmax(0,1fr)] lg:gap-8">
      <details ref={disclosure} className="group mb-5 rounded-card border border-line bg-sheet lg:hidden">
        <summary className="flex min-h-11 items-center gap-2 px-4 py-2 font-semibold marker:content-none">
          <span className="grow"><span className="font-normal text-soft">{t("room")}</span>{here ? menu(here.name) : t("menu")}</span>
          <ChevronDown aria-hidden className="size-4 transition-transform group-open:rotate-180" />
        </summary>
        <div className="border-t border-line p-3"><Places parts={parts} here={here?.to} label={t("allPlaces")} /></div>
      </details>
      <div className="hidden lg:block"><div className="sticky top-4 max-h-[calc(100dvh-2rem)] overflow-y-auto"><Places parts={parts} here={here?.to} label={t("controlRoom")} /></div></div>
      <div className="min-w-0">
        {!mayChange && <p role="note" className="mb-4 rounded-part bg-sunk px-3 py-2 text-sm text-soft">{t("readOnly")}</p>}
        {children}
      </div>
    </div>
  );
}

function Places({ parts, here, label }: { parts: readonly Part[]; here: string | undefined; label: string }) {
  return (
    <nav aria-label={label} className="grid grid-cols-2 gap-x-4 gap-y-5 sm:grid-cols-4 lg:grid-cols-1 lg:gap-y-4">
      {parts.map(({ title, places }) => (
        <div key={title}>
          <p className="px-2 pb-1 text-sm text-soft">{menu(title)}</p>
          <ul>
            {places.map(({ to, name }) => (
              <li key={to}>
                {/* The table of routes is put together elsewhere: to its types a path from a list is only text. */}
                <Link to={to as "/control"} activeOptions={{ exact: true }} aria-current={to === here ? "page" : undefined} className={`block rounded-part px-2 py-1.5 no-underline lg:py-1 ${to === here ? "bg-wash font-semibold text-ink" : "text-soft hover:bg-sunk hover:text-ink"}`}>
                  {menu(name)}
                </Link>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </nav>
  );
}
