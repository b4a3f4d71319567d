import { expect, test } from "vitest";
import { leftOf, outcomeOf, outcomesOf } from "./outcomes";

const reason = (outcome: string, reason: string, count: number) => ({ outcome, reason, count });

test("what a run did not get to is neither done nor left out by a rule", () => {
  const report = { outcomes: { success: 9, excluded: 28 }, reasons: [reason("success", "ok", 9), reason("excluded", "exclude", 3), reason("excluded", "stopped", 20), reason("excluded", "over_limit:max_pages", 5)] };

  expect(leftOf(report)).toBe(25);
  expect(outcomesOf(report)).toEqual([["left", 25], ["success", 9], ["excluded", 3]]);
  expect(outcomeOf("left")[0]).toBe("not got to when it ended");
});

test("a run that got to everything has nothing left", () => {
  expect(outcomesOf({ outcomes: { success: 2 }, reasons: [reason("success", "ok", 2)] })).toEqual([["success", 2]]);
});
