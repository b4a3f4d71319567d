import { expect, test } from "vitest";
import { oldestFailed } from "./oldestFailed";

const query = (status: string, dataUpdatedAt: number, data: unknown = {}, isActive = true) => ({ isActive: () => isActive, state: { status, data, dataUpdatedAt } });

test("only data that is shown and could not be refreshed is old", () => {
  expect(oldestFailed([query("success", 1), query("error", 2, null), query("error", 3, {}, false)])).toBeNull();
  expect(oldestFailed([query("error", 9), query("error", 7), query("success", 1)])).toBe(7);
});
