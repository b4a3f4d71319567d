import { afterEach, expect, test } from "vitest";
import { loadRooms } from "@/language/room";
import { speakOutside } from "@/language/spoken";
import { warningText } from "./warnings";

afterEach(() => { speakOutside("en"); });

test("a warning is in the server's words in English, by its field in French", async () => {
  const none = "max_depth: 0 captures only the seeds and their embedded files";
  expect(warningText(none)).toBe(none);
  speakOutside("fr");
  await loadRooms();
  const deep = warningText("max_depth: 9 is more than 5: the crawl may grow very large");
  expect([warningText(none), deep].every((one) => one?.startsWith("Une profondeur de liens de"))).toBe(true);
  expect(warningText(none)).not.toBe(deep);
  expect(warningText("unheard_of: 1")).toBeNull();
});
