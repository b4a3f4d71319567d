import { hashKey } from "@tanstack/react-query";

/** What was asked for and is not answered yet, by what it was asked with. */
export type UnderWay<Answer> = Map<string, Promise<Answer>>;

/** Begin what is not under way already; the same wish meanwhile gets the same answer. A button is disabled only when the page is drawn anew, and the second half of a double click comes before that. */
export function once<Answer>(underWay: UnderWay<Answer>, given: unknown, begin: () => Promise<Answer>): Promise<Answer> {
  const wish = hashKey([given]);
  const begun = underWay.get(wish);
  if (begun) return begun;
  const answer = begin().finally(() => underWay.delete(wish));
  underWay.set(wish, answer);
  return answer;
}
