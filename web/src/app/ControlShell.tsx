import { Link, Outlet, useLocation } from "@tanstack/react-router";
import { ChevronDown } from "lucide-react";
import { useEffect, useRef } from "react";
import { leaveForSignIn, signInPath, type Session } from "@/api/session";
import { buttonClass } from "@/design/Button";
import { Notice } from "@/design/Notice";
import { Problem } from "./Problem";
import { SignOut } from "./SignOut";
import { menuFor, placeOf, type Part } from "./controlMenu";
import { useSession } from "./useSession";

/** What stands around every page of the control room: its menu, for who may use it; the way to sign in for everybody else. */
export function ControlShell() {
  const session = useSession();
  // A question that fails later on takes nobody's page away: the next one that is refused leads to the sign-in.
  if (session.isError && !session.data) return <Problem problem={session.error} onAgain={() => void session.refetch()} />;
  if (!session.data) return <div className="min-h-[60vh]" aria-busy="true" />;
  if (!session.data.authenticated) return <SignInFirst />;
  if (!session.data.permissions.includes("watch")) return <Reader session={session.data} />;
  return <Room parts={menuFor(session.data.permissions)} mayChange={session.data.permissions.includes("operate")} />;
}

function SignInFirst() {
  useEffect(leaveForSignIn, []);
  const { pathname, searchStr } = useLocation();
  return (
    <div lang="en"><Notice title="Sign in to go on" actions={<a href={signInPath(pathname, searchStr)} className={buttonClass("main")}>Sign in</a>}>
      The control room is for people who run this archive. You come back to this page afterwards.
    </Notice></div>
  );
}

/** Members may explain addresses; the rest of the room is not for them. */
function Reader({ session }: { session: Session }) {
  const { pathname } = useLocation();
  return pathname === "/control/explain" && session.permissions.includes("explain") ? <div lang="en"><Outlet /></div> : <NotForYou session={session} />;
}

function NotForYou({ session }: { session: Session }) {
  return (
    <div lang="en"><Notice tone="warn" title="The control room is for operators" actions={<>{session.way === "session" && <SignOut className={buttonClass("main")} />}<Link to="/" className={buttonClass()}>To the archive</Link></>}>
      You are signed in as {session.user?.name}, with the role {session.user?.role}. An administrator can give you another role, or sign in with another account.
    </Notice></div>
  );
}

function Room({ parts, mayChange }: { parts: readonly Part[]; mayChange: boolean }) {
  const { pathname } = useLocation();
  const here = placeOf(pathname);
  const disclosure = useRef<HTMLDetailsElement>(null);
  // On a phone the menu lies over the page: it closes when a place was chosen.
  useEffect(() => {
    if (disclosure.current) disclosure.current.open = false;
  }, [pathname]);
  return (
    <div lang="en" className="lg:grid lg:grid-cols-[11rem_minmax(0,1fr)] lg:gap-8">
      <details ref={disclosure} className="group mb-5 rounded-card border border-line bg-sheet lg:hidden">
        <summary className="flex min-h-11 items-center gap-2 px-4 py-2 font-semibold marker:content-none">
          <span className="grow"><span className="font-normal text-soft">Control room: </span>{here?.name ?? "menu"}</span>
          <ChevronDown aria-hidden className="size-4 transition-transform group-open:rotate-180" />
        </summary>
        <div className="border-t border-line p-3"><Places parts={parts} here={here?.to} label="Control room, all places" /></div>
      </details>
      <div className="hidden lg:block"><div className="sticky top-4 max-h-[calc(100dvh-2rem)] overflow-y-auto"><Places parts={parts} here={here?.to} label="Control room" /></div></div>
      <div className="min-w-0">
        {!mayChange && <p role="note" className="mb-4 rounded-part bg-sunk px-3 py-2 text-sm text-soft">Read-only: your role shows everything here and changes nothing.</p>}
        <Outlet />
      </div>
    </div>
  );
}

function Places({ parts, here, label }: { parts: readonly Part[]; here: string | undefined; label: string }) {
  return (
    <nav aria-label={label} className="grid grid-cols-2 gap-x-4 gap-y-5 sm:grid-cols-4 lg:grid-cols-1 lg:gap-y-4">
      {parts.map(({ title, places }) => (
        <div key={title}>
          <p className="px-2 pb-1 text-sm text-soft">{title}</p>
          <ul>
            {places.map(({ to, name }) => (
              <li key={to}>
                {/* The table of routes is put together elsewhere: to its types a path from a list is only text. */}
                <Link to={to as "/control"} activeOptions={{ exact: true }} aria-current={to === here ? "page" : undefined} className={`block rounded-part px-2 py-1.5 no-underline lg:py-1 ${to === here ? "bg-wash font-semibold text-ink" : "text-soft hover:bg-sunk hover:text-ink"}`}>
                  {name}
                </Link>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </nav>
  );
}
