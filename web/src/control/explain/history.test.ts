import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { afterEach, expect, test } from "vitest";
import { loadRooms } from "@/language/room";
import { speakOutside } from "@/language/spoken";
import { Attempts } from "./History";

afterEach(() => { speakOutside("en"); });

test.each(["en", "fr"] as const)("the sentence about an attempt is shown as English on a page in %s", async (language) => {
  speakOutside(language);
  await loadRooms();
  const attempt = { id: 1, outcome: "failed", word: "failed", execution: 7, number: 2, depth: 0, source: "town", status: null, wireBytes: null, sentence: "attempt 2 in execution 7 of town ended: failed; what it stored was discarded" };
  const list = { attempts: [attempt], hasNextPage: false } as unknown as Parameters<typeof Attempts>[0]["list"];

  const shown = renderToStaticMarkup(createElement(QueryClientProvider, { client: new QueryClient() }, createElement(Attempts, { list })));

  expect(shown).toMatch(/<span lang="en"[^>]*>Attempt 2 in execution 7 of town ended: failed; what it stored was discarded\.<\/span>/);
});
