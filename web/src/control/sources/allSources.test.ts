import { expect, test } from "vitest";
import { allSources } from "./allSources";

const numbered = (count: number) => Array.from({ length: count }, (_, place) => ({ id: place + 1 }));

function paged(all: { id: number }[], size: number) {
  const asked: number[] = [];
  return { asked, page: (offset: number) => { asked.push(offset); return Promise.resolve({ sources: all.slice(offset, offset + size), total: all.length }); } };
}

test("the sources of all pages are listed, and no page is asked for in vain", async () => {
  const { asked, page } = paged(numbered(7), 3);

  expect(await allSources(page)).toEqual(numbered(7));
  expect(asked).toEqual([0, 3, 6]);
});

test("no source at all is one question", async () => {
  const { asked, page } = paged([], 3);

  expect(await allSources(page)).toEqual([]);
  expect(asked).toEqual([0]);
});

test("a source that moved to the next page is listed once", async () => {
  const pages = [{ sources: [{ id: 1 }, { id: 2 }], total: 4 }, { sources: [{ id: 2 }, { id: 3 }], total: 4 }];
  const found = await allSources(() => Promise.resolve(pages.shift() ?? { sources: [], total: 4 }));

  expect(found.map(({ id }) => id)).toEqual([1, 2, 3]);
});

test("pages end, however many sources are said to be there", async () => {
  let asked = 0;
  await allSources(() => { asked += 1; return Promise.resolve({ sources: [{ id: asked }], total: 1e9 }); });

  expect(asked).toBe(20);
});
