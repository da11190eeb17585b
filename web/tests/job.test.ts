import { describe, expect, test } from "vitest";
import type { Job, JobEvent, Reading } from "~/api/documents";
import { joined, withTail } from "~/charts/appending";
import { sentence } from "~/text/sentence";
import { spoiltMark, stalls, stepMarks, timeMarks } from "~/views/job/charts/runMarks";
import { factsOf } from "~/views/job/knowing/facts";
import { paceOf } from "~/views/job/knowing/pace";
import { numbersOf, stallOf } from "~/views/job/knowing/stall";
import { pictureOf, rangeChange } from "~/views/job/search";

const NOON = Date.parse("2026-03-01T12:00:00Z");
const at = (seconds: number) => new Date(NOON + seconds * 1000).toISOString();

const reading = (step: number, more: Partial<Reading> = {}) =>
  ({ seq: step, step, attempt: 1, at: at(step), loss: 1, steps_per_second: 1, ...more }) as Reading;
const readings = (...speeds: (number | null)[]) =>
  speeds.map((steps_per_second, place) => reading(place + 1, { steps_per_second }));
const event = (kind: string, seconds: number, more: object = {}) => ({ kind, at: at(seconds), ...more }) as JobEvent;
const loss = { key: "loss", label: "Loss", x: [1, 2, 3], y: [9, 8, 7] };

describe("live readings behind a drawn series", () => {
  test("only what is newer comes in, and no more than wanted is kept", () => {
    const known = [reading(1), reading(2)];
    expect(joined(known, [reading(1), reading(2)], 9)).toBe(known);
    expect(joined(known, [reading(2), reading(3), reading(4)], 3).map(({ step }) => step)).toEqual([2, 3, 4]);
  });

  test("go on where the series ends", () => {
    const tail = [reading(2), reading(4, { loss: 6 }), reading(5, { loss: null }), reading(6, { loss: "NaN" })];
    const made = withTail(loss, tail, "step", (one) => one.loss);
    expect(made.x).toEqual([1, 2, 3, 4, 6]);
    expect(made.y).toEqual([9, 8, 7, 6, null]);
    expect(made.count).toBe(5);
    expect(loss.x).toHaveLength(3);
  });

  test("a resumed training replaces the steps that it makes again", () => {
    const again = [reading(4), reading(5), reading(6), reading(5, { seq: 7, attempt: 2, loss: 2 })];
    const made = withTail(loss, again, "step", (one) => one.loss);
    expect(made.x).toEqual([1, 2, 3, 4, 5]);
    expect(made.y[4]).toBe(2);
  });

  test("without anything new the series stays the same object, so nothing is drawn again", () => {
    expect(withTail(loss, [reading(3)], "step", (one) => one.loss)).toBe(loss);
  });
});

describe("the picture in the address", () => {
  test("is read from text and numbers, and nonsense is ignored", () => {
    expect(pictureOf({ from: "10", to: 20, smooth: "100", log: 1, axis: "time", tab: "log" })).toEqual({
      axis: "time",
      log: true,
      span: 100,
      range: { from: 10, to: 20 },
      tab: "log",
    });
    expect(pictureOf({ from: "20", to: "10", smooth: "-3", log: "0", axis: "moon", tab: 7 })).toEqual({
      axis: "step",
      log: false,
      span: null,
      range: null,
      tab: null,
    });
    expect(pictureOf({ from: "", to: "9" }).range).toBeNull();
    expect(pictureOf({ smooth: "0" }).span).toBe(0);
  });

  test("is written as short numbers that still hold what was chosen", () => {
    expect(rangeChange("step", { from: 10.7, to: 19.2 })).toEqual({ from: 10, to: 20 });
    expect(rangeChange("step", { from: -5, to: -2 })).toEqual({ from: 0, to: 1 });
    expect(rangeChange("time", { from: 1.234, to: 5.678 })).toEqual({ from: 1.2, to: 5.7 });
    expect(rangeChange("step", null)).toEqual({ from: null, to: null });
  });
});

describe("a stall", () => {
  const flagged = event("stall_flagged", 60, {
    reason: "no step for 12 min",
    grace_minutes: 10,
    currentStep: 400,
    usual_steps_per_second: 0.5,
    confidence: "high",
  });

  test("says since when, when it is stopped and why, as a sentence", () => {
    const stall = stallOf([event("training_started", 0), flagged]);
    expect(stall).toMatchObject({ since: NOON + 60_000, stopsAt: NOON + 660_000, reason: "No step for 12 min." });
  });

  test("is over when it was cleared or the training ended, and may come back", () => {
    expect(stallOf([flagged, event("stall_cleared", 90)])).toBeNull();
    expect(stallOf([flagged, event("outcome", 90)])).toBeNull();
    expect(stallOf([flagged, event("stall_cleared", 90), { ...flagged, at: at(99) }])?.since).toBe(NOON + 99_000);
    expect(stallOf([])).toBeNull();
  });

  test("leaves out the numbers that are not known", () => {
    const stall = stallOf([flagged]);
    if (stall === null) throw new Error("there is a stall");
    expect(numbersOf(stall)).toEqual([
      ["Last step", "400"],
      ["Usual pace", "2 s/step"],
      ["Certainty", "high"],
    ]);
    expect(numbersOf({ ...stall, pace: 0.25, eta: 90 })).toContainEqual(["Pace", "4 s/step, usually 2 s/step"]);
    expect(numbersOf({ ...stall, pace: 0, usualPace: null })).toContainEqual(["Pace", "no progress"]);
  });
});

test("a message becomes a sentence", () => {
  expect(["no disk left", "It waits.", "really?", ""].map(sentence)).toEqual([
    "No disk left.",
    "It waits.",
    "Really?",
    "",
  ]);
});

describe("pace", () => {
  test("needs enough readings", () => {
    expect(paceOf(readings(1, 1, 1, 1, 1))).toBeNull();
    expect(paceOf(readings(1, null, 1, 0, 1, 1, 1))).toBeNull();
  });

  test("is steady in spite of one slow step", () => {
    expect(paceOf(readings(1, 1, 1, 1, 1, 1, 1, 0.01))).toMatchObject({ stepsPerSecond: 1, isSteady: true });
  });

  test("has slowed down where the last quarter is slower", () => {
    const pace = paceOf(readings(2, 2, 2, 2, 2, 2, 1, 1));
    expect(pace).toMatchObject({ stepsPerSecond: 1, change: -0.5, isSteady: false, over: 7 });
  });

  test("counts only the attempt that runs", () => {
    const before = readings(9, 9, 9, 9, 9, 9, 9, 9);
    const now = readings(1, 1, 1).map((one) => ({ ...one, attempt: 2 }));
    expect(paceOf([...before, ...now])).toBeNull();
  });
});

describe("what to know", () => {
  const job = (more: object = {}) =>
    ({
      state: "EXECUTING",
      outcome: null,
      alerts: [],
      progress: { step: 100, loss: 0.5, first_loss: 1, eta_seconds: 3600, steps_per_second: 1 },
      costs: [{ ended_at: null, rate_per_hour_micros: 2_000_000 }],
      cost_usd: 1,
      limits: { max_spend_usd: 10 },
      quote: { cost_usd: { low: 2, high: 4 } },
      used: {},
      transfer: null,
      ...more,
    }) as unknown as Job;
  const facts = (more?: object, events: JobEvent[] = []) =>
    Object.fromEntries(
      factsOf(job(more), events, readings(...new Array(8).fill(1)), NOON).map((one) => [one.key, one]),
    );

  test("of a training that goes well", () => {
    const { pace, learning, cost } = facts();
    expect(pace).toMatchObject({ tone: "good", text: "Pace 1 steps/s, steady for 7 s." });
    expect(learning).toMatchObject({ tone: "good", text: "Loss 0.5, 50\u00a0% below its first value." });
    expect(cost).toMatchObject({ tone: "good", text: "At this pace it will cost $3.00, within its quote." });
  });

  test("of one that becomes dearer than quoted, or is stopped at its limit", () => {
    expect(facts({ cost_usd: 3 }).cost?.text).toContain("above the quote of at most $4.00");
    expect(facts({ cost_usd: 9 }).cost).toMatchObject({ tone: "bad" });
    expect(facts({ cost_usd: 9 }).cost?.text).toContain("it will be stopped early, at $10.00");
  });

  test("a pause says what runs and for how long, since the figures stand still", () => {
    const progress = { ...job().progress, phase: "sampling", phase_since: at(-120) };
    expect(facts({ progress }).phase?.text).toBe("Sampling for 2 min.");
    expect(facts({ progress: { ...progress, phase: "training" } }).phase).toBeUndefined();
  });

  test("of one that stands still promise nothing that its last readings did", () => {
    const stalled = job({ alerts: [{ kind: "stall", message: "no step" }] });
    const found = factsOf(stalled, [], readings(...new Array(8).fill(1)), NOON);
    expect(found.map(({ key, text }) => [key, text])).toEqual([
      ["learning", "Loss 0.5, 50\u00a0% below its first value."],
      ["cost", "Quoted $2.00 to $4.00; it is stopped at $10.00."],
    ]);
  });

  test("a loss that is not a number comes first", () => {
    const spoilt = job({ progress: { step: 9, loss: "NaN", first_loss: 1 } });
    expect(factsOf(spoilt, [], [], NOON)[0]).toMatchObject({
      key: "loss",
      tone: "bad",
      text: "The loss is not a number: what it learns from now on is lost.",
    });
  });

  test("alerts are sentences; a stall has a place of its own", () => {
    const alerts = [
      { kind: "disk", message: "the disk is full" },
      { kind: "stall", message: "no step" },
    ];
    const found = facts({ alerts });
    expect(found.disk?.text).toBe("The disk is full.");
    expect(found.stall).toBeUndefined();
  });

  test("memory by how little is left", () => {
    const tone = (gpu_memory_gib: number) => facts({ used: { gpu_memory_gib, gpu_gib: 100 } }).memory?.tone;
    expect([50, 90, 96].map(tone)).toEqual(["good", "attention", "bad"]);
  });

  test("of one that is over: how long it trained, from the events", () => {
    const over = [event("training_started", 0), event("state", 90, { to: "FETCHING_RESULTS" })];
    const found = facts({ outcome: "COMPLETED", state: "ENDED", cost_usd: 1 }, over);
    expect(found.trained?.text).toBe("Trained 2 min for 100 steps.");
    expect(found.cost?.text).toBe("Cost $1.00, less than the quote of $2.00 to $4.00.");
  });
});

describe("marks of a run", () => {
  const rows = (
    event_type: unknown[],
    details: unknown[],
    timestamp: unknown[] = event_type.map((_, place) => place),
  ) => ({ columns: { event_type, details, timestamp } }) as never;

  test("over steps: each file once, and what the training recorded with its step", () => {
    const job = {
      checkpoints: [
        { kind: "checkpoint", step: 200 },
        { kind: "sample", step: 100 },
        { kind: "sample", step: 100 },
        { kind: "model", step: 300 },
        { kind: "checkpoint", step: null },
      ],
    } as unknown as Job;
    const marks = stepMarks(
      job,
      rows(["oom_error", "oom_error", "save_end"], ['{"step": 150}', "{broken", '{"step": 9}']),
    );
    expect(marks.map(({ x, kind }) => [x, kind])).toEqual([
      [100, "sample"],
      [150, "problem"],
      [200, "checkpoint"],
    ]);
    expect(marks[1]?.label).toBe("out of memory, step 150");
  });

  test("over time: recorded ones and anomalies, in order", () => {
    const anomaly = event("anomaly", -NOON / 1000 + 1, { sentence: "The loss jumped." });
    const marks = timeMarks(rows(["save_end", "unheard_of", "oom_error"], [null, null, "7"], [2, 3, "x"]), [anomaly]);
    expect(marks.map(({ x, label }) => [x, label])).toEqual([
      [1, "The loss jumped."],
      [2, "checkpoint"],
    ]);
  });

  test("a loss that is not a number any more is marked where that began; a gap is not", () => {
    expect(spoiltMark({ ...loss, y: [9, null, null] })?.x).toBe(2);
    expect(spoiltMark({ ...loss, y: [9, null, 7] })).toBeNull();
    expect(spoiltMark({ ...loss, y: [null, null, null] })).toBeNull();
  });

  test("stalls are stretches until they were cleared, the last until now", () => {
    const events = [
      event("stall_flagged", 10, { currentStep: 40 }),
      event("stall_cleared", 30, { currentStep: 41 }),
      event("stall_flagged", 50, { currentStep: 60 }),
    ];
    const now = NOON + 70_000;
    expect(stalls(events, "step", now).map(({ from, to }) => [from, to])).toEqual([
      [40, 41],
      [60, 60],
    ]);
    const begin = NOON / 1000;
    expect(stalls(events, "time", now).map(({ from, to }) => [from - begin, to - begin])).toEqual([
      [10, 30],
      [50, 70],
    ]);
  });
});
