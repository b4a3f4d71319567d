import { ApiProblem } from "@/api/problem";

/** Return what the server found wrong with a field of a form, without its name; null if it is about something else. */
export function refusedAt(problem: unknown, field: string): string | null {
  if (!(problem instanceof ApiProblem)) return null;
  const isNamed = problem.message.startsWith(`${field}: `);
  if (!isNamed && problem.field !== field && !problem.field?.startsWith(`${field}.`)) return null;
  const said = isNamed ? problem.message.slice(field.length + 2) : problem.message;
  return said.charAt(0).toUpperCase() + said.slice(1);
}
