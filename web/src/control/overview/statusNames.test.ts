import { expect, test } from "vitest";
import { statusName, statusTone } from "./statusNames";

test.each([[200, "200 OK", "good"], [301, "301 Moved permanently", "accent"], [404, "404 Not found", "warn"], [599, "599", "bad"], [null, "No response", "bad"]] as const)("%s is %s", (status, name, tone) => {
  expect(statusName(status)).toBe(name);
  expect(statusTone(status)).toBe(tone);
});
