import { expect, test } from "vitest";
import { loadRooms } from "@/language/room";
import { speakOutside } from "@/language/spoken";
import { hasTime, NEVER, readWords, scheduleText, wordsOf, zonesFor, type When } from "./schedule";

const when = (change: Partial<When>): When => ({ ...NEVER, zone: "UTC", ...change });

test("the form says what the server reads", () => {
  expect(wordsOf(NEVER)).toBe("once");
  expect(wordsOf(when({ often: "daily", zone: "Europe/Paris" }))).toBe("daily at 03:00 Europe/Paris");
  expect(wordsOf(when({ often: "weekly", weekday: "Friday" }))).toBe("weekly on Friday at 03:00 UTC");
  expect(wordsOf(when({ often: "weekly", at: "", adapts: false }))).toBe("weekly");
  expect(wordsOf(when({ often: "monthly", day: "31" }))).toBe("monthly on day 31 at 03:00 UTC");
  expect(wordsOf(when({ often: "yearly", day: "29", month: "February" }))).toBe("yearly on 29 February at 03:00 UTC");
  expect(wordsOf(when({ often: "every", every: "6", unit: "hours", adapts: true }))).toBe("every 6 hours, less often while nothing changes");
  expect(wordsOf(when({ often: "every", every: "3", from: "2026-11-19" }))).toBe("every 3 days from 2026-11-19 at 03:00 UTC");
});

test("the server's words come back as the same form", () => {
  for (const words of [
    "once", "every 6 hours", "every 6 hours, less often while nothing changes", "daily at 03:05 UTC", "weekly on Friday at 03:00 Europe/Paris",
    "monthly on day 31 at 03:00 UTC", "yearly on 29 February at 03:00 America/St_Johns", "every 3 days from 2026-11-19 at 03:00 UTC", "every 2 years from 2026-01-31 at 03:00 UTC",
  ]) expect(wordsOf(readWords(words))).toBe(words);
  expect(wordsOf(readWords("every day, less often while nothing changes"))).toBe("daily, less often while nothing changes");
  expect(wordsOf(readWords("every hour"))).toBe("every 1 hours");
  expect(readWords("<b>when</b>")).toEqual(NEVER);
});

test("only days and longer have a time; the reader's own zone is offered once", () => {
  expect([hasTime(NEVER), hasTime(when({ often: "every", unit: "hours" })), hasTime(when({ often: "every", unit: "days" }))]).toEqual([false, false, true]);
  expect(zonesFor("UTC").filter((zone) => zone === "UTC")).toHaveLength(1);
  expect(zonesFor("Europe/Paris")).toContain("Europe/Paris");
});

test("a schedule is read in the language of the page", async () => {
  const words = ["once", "every 6 hours", "every hour", "weekly on Friday at 03:00 Europe/Paris", "yearly on 29 February at 03:00 UTC", "monthly on day 31 at 03:00 UTC, less often while nothing changes"];
  expect(words.slice(1).map(scheduleText)).toEqual(words.slice(1));
  speakOutside("fr");
  await loadRooms();
  expect(words.map(scheduleText)).toEqual([
    "seulement sur demande", "toutes les 6 heures", "chaque heure", "chaque semaine, le vendredi à 03:00 (Europe/Paris)", "chaque année, le 29 février à 03:00 (UTC)", "chaque mois, le 31 à 03:00 (UTC), moins souvent si rien ne change",
  ]);
  speakOutside("en");
});
