import type { ApiProblem } from "@/api/problem";
import { sentence } from "../page/words";

/** Return the lines of a text that hold something, trimmed, each once. */
export function linesOf(text: string): string[] {
  return [...new Set(text.split(/\r?\n/).map((line) => line.trim()).filter(Boolean))];
}

/** Return the field of a source that a problem is about, empty if it names none. */
export function fieldOf(problem: ApiProblem | null): string {
  return problem?.field?.replace(/^config\./, "").replace(/\[\d+\].*$/, "") ?? "";
}

/** Return what is wrong with a field of the form, in the server's words; null if it is another that is wrong. */
export function problemAt(problem: ApiProblem | null, ...fields: string[]): string | null {
  if (!problem?.field || !fields.includes(fieldOf(problem))) return null;
  const said = problem.detail || problem.message;
  const plain = said.startsWith(problem.field) ? said.slice(problem.field.length).replace(/^:\s*/, "") : said;
  return sentence(plain);
}
