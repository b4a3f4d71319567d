import createClient, { type Middleware } from "openapi-fetch";
import { ApiProblem } from "./problem";
import type { paths } from "./schema";

/** A write by cookie carries the session's own token (see docs/accounts.md): another site cannot read it. */
const guarded: Middleware = {
  onRequest({ request }) {
    if (request.method === "GET" || request.method === "HEAD") return undefined;
    const token = document.cookie.match(/(?:^|;\s*)holdfast_csrf=([^;]+)/)?.[1];
    if (token) request.headers.set("X-CSRF-Token", decodeURIComponent(token));
    return request;
  },
};

const told: Middleware = {
  async onResponse({ response }) {
    if (!response.ok) throw await ApiProblem.of(response);
    return undefined;
  },
};

/** The server that this page came from, with the types of its OpenAPI document. */
export const api = createClient<paths>({ baseUrl: "", credentials: "same-origin" });
api.use(guarded, told);

/** Return the body of an answer; a refused request has thrown an ApiProblem already. */
export async function body<T>(asked: Promise<{ data?: T }>): Promise<T> {
  const { data } = await asked;
  return data as T;
}
