import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Connection, connection, fetchPatiently, QUIET_MS } from "./connection";

function stage(answers: boolean[]) {
  let now = 1000;
  const waits: number[] = [];
  let next: (() => void) | null = null;
  const probe = vi.fn(() => Promise.resolve(answers.shift() ?? true));
  const made = new Connection({ probe, now: () => now, wait: (run, ms) => { waits.push(ms); next = run; return () => { next = null; }; } });
  const seen: (number | null)[] = [];
  made.subscribe(() => seen.push(made.since()));
  return { made, probe, waits, seen, pass: (ms: number) => { now += ms; }, goOn: async () => { await vi.waitFor(() => expect(next).not.toBeNull()); next?.(); } };
}

test("a doubt about a server that answers changes nothing", async () => {
  const { made, seen, probe } = stage([true]);

  expect(await Promise.all([made.doubt(), made.doubt()])).toEqual([false, false]);
  expect([seen, probe.mock.calls.length]).toEqual([[], 1]);
});

test("a server that is away is probed at growing intervals, and its last answer is named", async () => {
  const { made, seen, waits, goOn, pass } = stage([false, false, false]);

  made.answered();
  pass(5000);
  const back = made.doubt();
  for (let at = 0; at < 3; at++) await goOn();

  expect(await back).toBe(true);
  expect([seen, waits]).toEqual([[1000, null], [1000, 2000, 4000]]);
});

test("an answer ends the wait for the next probe", async () => {
  const { made, seen, waits } = stage([false]);

  const back = made.doubt();
  await vi.waitFor(() => expect(waits).toHaveLength(1));
  made.answered();

  expect(await back).toBe(true);
  expect(seen.at(-1)).toBeNull();
});

test("silence raises a doubt, an answer does not", async () => {
  const { made, probe, pass } = stage([]);

  pass(QUIET_MS - 1);
  made.checkSilence();
  made.answered();
  pass(1);
  made.checkSilence();
  expect(probe).not.toHaveBeenCalled();
  pass(QUIET_MS);
  made.checkSilence();
  expect(probe).toHaveBeenCalledTimes(1);
});

const sent: string[] = [];
const outcomes: (Response | Error)[] = [];

beforeEach(() => {
  sent.length = outcomes.length = 0;
  vi.stubGlobal("fetch", vi.fn(async (asked: string) => {
    if (asked === "/health/live") return Response.json({ status: "alive" });
    sent.push(asked);
    const outcome = outcomes.shift() ?? new TypeError("Failed to fetch");
    if (outcome instanceof Error) throw outcome;
    return outcome;
  }));
});
afterEach(() => { vi.unstubAllGlobals(); vi.restoreAllMocks(); });

test("a reading is repeated for as long as the server is away, and once while it answers", async () => {
  vi.spyOn(connection, "doubt").mockResolvedValueOnce(true).mockResolvedValueOnce(true).mockResolvedValue(false);
  outcomes.push(new TypeError(), new Response("", { status: 502 }), new TypeError(), new Response("here"));

  expect(await (await fetchPatiently("/api/stats")).text()).toBe("here");
  expect(sent).toHaveLength(4);
  await expect(fetchPatiently("/api/stats")).rejects.toThrow("Failed to fetch");
  expect(sent).toHaveLength(6);
});

test("a change is sent once, and our own 503 is an answer", async () => {
  const doubt = vi.spyOn(connection, "doubt").mockResolvedValue(true);

  await expect(fetchPatiently("/api/jobs", { method: "POST" })).rejects.toThrow("Failed to fetch");
  expect([sent.length, doubt.mock.calls.length]).toEqual([1, 1]);
  outcomes.push(new Response("{}", { status: 503, headers: { "X-Request-Id": "r1" } }));
  expect((await fetchPatiently("/api/stats")).status).toBe(503);
  expect(doubt).toHaveBeenCalledTimes(1);
});

test("who has left waits for nothing", async () => {
  const stop = new AbortController();
  vi.spyOn(connection, "doubt").mockImplementation(async () => { stop.abort(); return true; });

  await expect(fetchPatiently("/api/stats", { signal: stop.signal })).rejects.toThrow("abort");
  expect(sent).toHaveLength(1);
});

test("a quiet page notices a dead server within ten seconds", () => {
  // The timer of the page looks every half of it.
  expect(1.5 * QUIET_MS).toBeLessThan(10_000);
});
