import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { endSession, onSessionEnd, readSession, signInPath } from "./session";

const SIGNED_IN = { authenticated: true, csrfToken: "t1", permissions: ["read", "watch"], user: { id: 1, name: "ann", role: "operator" }, way: "session" };
const answers: { status: number; told: unknown }[] = [];

beforeEach(() => {
  vi.stubGlobal("fetch", vi.fn(async () => {
    const { status, told } = answers.shift() ?? { status: 500, told: {} };
    return new Response(JSON.stringify(told), { status });
  }));
});

afterEach(() => {
  answers.length = 0;
  endSession();
  vi.unstubAllGlobals();
});

test("the session is asked for once, and anew when that is wanted", async () => {
  answers.push({ status: 200, told: SIGNED_IN }, { status: 200, told: { ...SIGNED_IN, csrfToken: "t2" } });
  expect((await Promise.all([readSession(), readSession()])).map((one) => one.csrfToken)).toEqual(["t1", "t1"]);
  expect((await readSession(true)).csrfToken).toBe("t2");
  expect((await readSession()).csrfToken).toBe("t2");
});

test("a session that has ended is nobody's, not an error", async () => {
  answers.push({ status: 401, told: {} }, { status: 200, told: { ...SIGNED_IN, authenticated: false, user: null, csrfToken: null } });
  expect(await readSession()).toMatchObject({ authenticated: false, hasEnded: true });
});

test("what could not be asked is asked again", async () => {
  answers.push({ status: 500, told: {} }, { status: 200, told: SIGNED_IN });
  await expect(readSession()).rejects.toThrow("who is signed in");
  expect((await readSession()).user?.name).toBe("ann");
});

test("who shows the session is told of its end", () => {
  const told = vi.fn();
  const stop = onSessionEnd(told);
  endSession();
  stop();
  endSession();
  expect(told).toHaveBeenCalledTimes(1);
});

test("the way to sign in leads back to the page with its question", () => {
  expect(signInPath("/control/jobs", "?state=failed&q=a b")).toBe("/signin?next=%2Fcontrol%2Fjobs%3Fstate%3Dfailed%26q%3Da%20b");
  expect(signInPath("/control/jobs", `?q=${"x".repeat(3000)}`)).toBe("/signin?next=%2Fcontrol%2Fjobs");
});
