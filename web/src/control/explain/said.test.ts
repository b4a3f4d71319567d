import { afterEach, expect, test } from "vitest";
import { loadRooms } from "@/language/room";
import { speakOutside } from "@/language/spoken";
import { capturesSaid, robotsSaid, stepSaid, turnSaid } from "./said";

afterEach(() => { speakOutside("en"); });

const turn = { kind: "queued", source: "town", job: 1, execution: 7, at: null, place: 3, sentence: "it is number 3" } as const;

test("English sentences are the server's own", () => {
  expect(turnSaid(turn)).toBe("It is number 3.");
});

test("French sentences are made of the record's facts", async () => {
  speakOutside("fr");
  await loadRooms();

  expect(turnSaid(turn)).toBe("Elle est à la place 3 de la file de son domaine dans la collecte 7, qui attend un processus.");
  expect(turnSaid({ ...turn, place: null, kind: "never" })).toContain("Aucune collecte");
  expect(robotsSaid({ known: "rules", allowed: false, sentence: "x" } as Parameters<typeof robotsSaid>[0])).toBe("robots.txt l’interdit.");
  expect(capturesSaid({ count: 2, sentence: "x" } as Parameters<typeof capturesSaid>[0])).toBe("2 captures de cette page.");
  expect(stepSaid({ step: "https", after: "", sentence: "x" })).toBe("Http et https sont une même page.");
});
