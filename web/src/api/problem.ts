import { spoken } from "@/language/spoken";
import { say } from "@/language/words";
interface Told {
  error?: string;
  detail?: string;
  code?: string;
  requestId?: string;
  field?: string;
}

/** What the server refused or could not do, in its own words: a sentence, the next step, an id to ask about. */
export class ApiProblem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly detail: string,
    readonly requestId: string,
    readonly field: string | undefined,
    readonly retryAfter: number | undefined,
  ) {
    super(message);
  }

  static async of(response: Response): Promise<ApiProblem> {
    const told = (await response.json().catch(() => ({}))) as Told;
    const wait = Number(response.headers.get("Retry-After"));
    const summary = told.error ?? say(spoken.language, "problem.status", { status: String(response.status) });
    return new ApiProblem(
      response.status,
      told.code ?? "unknown",
      summary,
      told.detail && told.detail !== summary ? told.detail : "",
      told.requestId ?? response.headers.get("X-Request-Id") ?? "",
      told.field,
      Number.isFinite(wait) && wait > 0 ? wait : undefined,
    );
  }
}

/** Whether asking again at once may help: the server was busy or away, or the network was. A limit says itself when to ask again. */
export function mayPass(problem: unknown): boolean {
  return !(problem instanceof ApiProblem) || problem.status >= 500;
}
