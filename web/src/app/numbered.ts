import { notFound } from "@tanstack/react-router";

/** Whether a part of an address is the number of a row. */
export function isNumber(id: string): boolean {
  return /^[1-9]\d{0,14}$/.test(id);
}

/** For routes to a thing by its number: anything else is a page that is not there, and is asked of no server. */
export const numbered = {
  beforeLoad: ({ params }: { params: { id: string } }) => {
    if (!isNumber(params.id)) throw notFound();
  },
};
