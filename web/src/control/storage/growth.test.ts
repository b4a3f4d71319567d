import { expect, test } from "vitest";
import { outlook, sizes } from "./growth";

const at = (day: string) => Date.parse(`${day}T12:00:00Z`) / 1000;

test("the size rises from nothing, day by day, to now", () => {
  const { times, bytes } = sizes([{ day: "2026-11-01", bytes: 10 }, { day: "2026-11-03", bytes: 5 }], at("2026-11-03"));
  expect(bytes).toEqual([0, 10, 10, 15]);
  expect(times.at(-1)).toBe(at("2026-11-03"));
  expect(sizes([], at("2026-11-03"))).toEqual({ times: [], bytes: [] });
});

test("ten years are shown in few points and none is lost", () => {
  const growth = Array.from({ length: 120 }, (_, month) => ({ day: `${2016 + Math.floor(month / 12)}-${String((month % 12) + 1).padStart(2, "0")}-15`, bytes: 1 }));
  const { times, bytes } = sizes(growth, at("2026-01-01"));
  expect(bytes.at(-1)).toBe(120);
  expect(times.length).toBeLessThan(370);
  expect(times.every((time, index) => index === 0 || time > (times[index - 1] ?? 0))).toBe(true);
});

test("what it grows by says when the room is used up", () => {
  expect(outlook([{ day: "2026-01-01", bytes: 999 }, { day: "2026-11-10", bytes: 300 }], at("2026-11-17"), 1000)).toEqual({ perDay: 10, days: 100 });
  expect(outlook([{ day: "2026-01-01", bytes: 999 }], at("2026-11-17"), 1000).days).toBeNull();
  expect(outlook([], 0, 1).days).toBeNull();
});
