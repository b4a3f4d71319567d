import createClient, { type Middleware } from "openapi-fetch";
import { connection, fetchPatiently } from "./connection";
import { ApiProblem } from "./problem";
import type { paths } from "./schema";
import { endSession, leaveForSignIn, readSession } from "./session";

/** A change by cookie carries the session's own token (see docs/accounts.md): another site cannot read it. */
const guarded: Middleware = {
  async onRequest({ request }) {
    if (request.method === "GET" || request.method === "HEAD") return undefined;
    if (connection.since() !== null) throw new TypeError("the server does not answer");
    const { csrfToken } = await readSession();
    if (csrfToken) request.headers.set("X-CSRF-Token", csrfToken);
    return request;
  },
};

const told: Middleware = {
  async onResponse({ request, response }) {
    if (response.ok) return undefined;
    let answer = response;
    if (answer.status === 401) {
      endSession();
      if (window.location.pathname.startsWith("/control")) leaveForSignIn();
      // The browser has forgotten the session that ended: what is public is still there for it.
      else if (request.method === "GET") answer = await fetchPatiently(request.url, { credentials: "same-origin", signal: request.signal });
    }
    // Signed in anew in another tab, perhaps: the next try shows the new token.
    if (answer.status === 403) endSession();
    if (!answer.ok) throw await ApiProblem.of(answer);
    return answer;
  },
};

/** The server that this page came from, with the types of its OpenAPI document. */
export const api = createClient<paths>({ baseUrl: "", credentials: "same-origin", fetch: fetchPatiently });
api.use(guarded, told);

/** Return the body of an answer; a refused request has thrown an ApiProblem already. */
export async function body<T>(asked: Promise<{ data?: T }>): Promise<T> {
  const { data } = await asked;
  return data as T;
}
