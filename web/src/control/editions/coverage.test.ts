import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { afterEach, expect, test } from "vitest";
import { loadRooms } from "@/language/room";
import { speakOutside } from "@/language/spoken";
import { say } from "@/language/words";
import { CoverageBar } from "./Coverage";
import type { Edition } from "./useEditions";

afterEach(() => { speakOutside("en"); });

test("each part of the bar in French agrees with its number", async () => {
  speakOutside("fr");
  await loadRooms();
  const edition = { intendedUrlCount: 1, capturedUrlCount: 2, failedUrlCount: 0, missingUrlCount: 1, excludedUrlCount: 1 } as Edition;

  const text = renderToStaticMarkup(createElement(CoverageBar, { edition })).replace(/<[^>]*>/g, "|").replace(/\|+/g, "|");

  expect(text).toBe("|1 prévue|2 capturées|1 manquante|1 exclue|");
});

test("the public edition in French agrees with its numbers", () => {
  expect(say("fr", "outcome.excluded", { count: 1 })).toBe("exclue par une règle");
  expect(say("fr", "outcome.excluded", { count: 2 })).toBe("exclues par une règle");
});
