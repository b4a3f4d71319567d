import { fetchPatiently } from "./connection";
import type { components } from "./schema";

export interface Session extends SessionState {
  /** Whether somebody was signed in here and is no longer. */
  hasEnded: boolean;
}
type SessionState = components["schemas"]["SessionState"];
export type Permission = Session["permissions"][number];

let known: Promise<Session> | null = null;
let wasSignedIn = false;
const endings = new Set<() => void>();

async function ask(): Promise<Session> {
  // A session that has ended is refused once; with that answer the browser forgets it, and the next one tells who is left.
  for (let times = 0; times < 2; times += 1) {
    const answer = await fetchPatiently("/api/session", { credentials: "same-origin", cache: "no-store" });
    if (answer.ok) {
      const session = (await answer.json()) as SessionState;
      wasSignedIn ||= session.authenticated;
      return { ...session, hasEnded: wasSignedIn && !session.authenticated };
    }
    if (answer.status !== 401) break;
    wasSignedIn = true;
  }
  throw new Error("the server does not say who is signed in");
}

/** GET /api/session: who asks, what that one may do, and the token that every change carries. Asked once, or `anew`. */
export function readSession(anew = false): Promise<Session> {
  if (anew || !known) {
    const asked = ask();
    known = asked;
    asked.catch(() => {
      if (known === asked) known = null;
    });
  }
  return known as Promise<Session>;
}

/** The server did not take the session: whoever shows it asks again. */
export function endSession() {
  known = null;
  for (const told of endings) told();
}

/** Call `told` whenever a session has ended; returns how to stop. */
export function onSessionEnd(told: () => void): () => void {
  endings.add(told);
  return () => endings.delete(told);
}

/** Where to sign in, and to come back from. */
export function signInPath(path: string, search = ""): string {
  // The server takes no more than 2,048 characters, and a page without its question is better than none.
  const back = `${path}${search}`;
  return `/signin?next=${encodeURIComponent(back.length > 2000 ? path.slice(0, 2000) : back)}`;
}

let leavingFor: string | null = null;

/** The control room is nothing without a session: sign in, and come back to the same page. */
export function leaveForSignIn() {
  const path = signInPath(window.location.pathname, window.location.search);
  // Every question that a page has under way hears of it: one of them leaves.
  if (path === leavingFor) return;
  leavingFor = path;
  window.location.replace(path);
}
