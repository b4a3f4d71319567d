import { expect, test } from "vitest";
import { AGAIN_MS, listen, type Source } from "./stream";

class Fake implements Source {
  readyState = 0;
  isClosed = false;
  listeners = new Map<string, (event: MessageEvent<string>) => void>();
  addEventListener(name: string, listener: (event: MessageEvent<string>) => void) { this.listeners.set(name, listener); }
  close() { this.isClosed = true; }
  say(name: string, data: unknown = {}) { this.listeners.get(name)?.({ data: typeof data === "string" ? data : JSON.stringify(data) } as MessageEvent<string>); }
}

function stage() {
  const made: Fake[] = [];
  const waits: { run: () => void; ms: number; isOff: boolean }[] = [];
  const heard: unknown[] = [];
  const close = listen("/api/x/events", ["x:y"], {
    event: (name, data) => heard.push([name, data]),
    live: (isLive) => heard.push(isLive),
    revoked: () => heard.push("revoked"),
  }, {
    make: () => { const one = new Fake(); made.push(one); return one; },
    wait: (run, ms) => { const one = { run, ms, isOff: false }; waits.push(one); return () => { one.isOff = true; }; },
  });
  const now = () => made.at(-1) as Fake;
  return { made, waits, heard, close, now };
}

test("a greeting makes it live, events are read, and data that is no JSON is null", () => {
  const { heard, now } = stage();

  now().say("connected");
  now().say("x:y", { n: 1 });
  now().say("x:y", "<b>");

  expect(heard).toEqual([true, ["x:y", { n: 1 }], ["x:y", null]]);
});

test("a stream that was cut off is left to the browser; one that was refused is asked for again later", () => {
  const { made, waits, heard, now } = stage();

  now().say("error");
  expect(waits).toHaveLength(0);
  now().readyState = 2;
  now().say("error");

  expect(waits[0]?.ms).toBe(AGAIN_MS);
  waits[0]?.run();
  expect(made).toHaveLength(2);
  expect(heard).toEqual([false, false]);
});

test("a stream of what is over is not taken up again", () => {
  const { now, waits, heard } = stage();

  now().say("end", { reason: "over" });
  now().readyState = 2;
  now().say("error");

  expect(now().isClosed).toBe(true);
  expect(waits).toHaveLength(0);
  expect(heard[0]).toBe(false);
});

test("a session that ended is told", () => {
  const { now, heard } = stage();

  now().say("end", { reason: "revoked" });

  expect(heard).toEqual([false, "revoked"]);
});

test("closing takes a wait back", () => {
  const { now, waits, close } = stage();
  now().readyState = 2;
  now().say("error");

  close();

  expect(waits[0]?.isOff).toBe(true);
});

test("a stream whose beats stop is opened again", () => {
  const { made, waits, heard, now } = stage();
  const running = () => waits.filter((one) => !one.isOff);

  now().say("connected", { heartbeatSeconds: 15 });
  now().say("beat");
  expect(running().map((one) => one.ms)).toEqual([37_500]);
  running()[0]?.run();

  expect([made.length, made[0]?.isClosed, heard]).toEqual([2, true, [true, false]]);
});
