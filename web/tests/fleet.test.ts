import { describe, expect, it } from "vitest";
import type { OverviewRow } from "~/api/documents";
import { pathOf } from "~/design/Sparkline";
import { progressToShow } from "~/frame/progress";
import { choicesOf, filtered, grouped, NEEDS_YOU, sorted } from "~/views/fleet/rows";

function row(id: string, fields: Partial<OverviewRow> = {}): OverviewRow {
  return {
    id,
    name: id,
    owner: null,
    recipe: "tiny-lora@1",
    provider: "fake",
    shown: "EXECUTING",
    stage: "training",
    state_since: "2026-11-17T10:00:00+00:00",
    created_at: "2026-11-17T10:00:00+00:00",
    ended_at: null,
    step: 5,
    total_steps: 10,
    percent: 50,
    loss: 0.5,
    loss_trend: [],
    steps_per_second: 1,
    eta_seconds: 5,
    gpu: "RTX 4090",
    gpus: 1,
    gpu_percent: 90,
    gpu_memory_used_gib: 10,
    gpu_memory_total_gib: 24,
    price_per_hour_usd: 0.3,
    cost_usd: 0.1,
    quoted_usd: 0.2,
    max_spend_usd: 1,
    health: null,
    explanation: null,
    needs: null,
    ...fields,
  };
}

const ids = (rows: readonly OverviewRow[]) => rows.map((each) => each.id).join(" ");
const STUCK = { kind: "stall", sentence: "Stalled." };

describe("which trainings are shown", () => {
  const rows = [
    row("a", { owner: "ann", cost_usd: 3 }),
    row("b", { gpu: null, loss: null, needs: STUCK, cost_usd: 1 }),
    row("c", { shown: "COMPLETED", ended_at: "2026-11-17T11:00:00+00:00", recipe: "flux-lora@1", cost_usd: 2 }),
  ];

  it("finds every word of the filter in what a line shows", () => {
    expect(ids(filtered(rows, "ANN training", {}))).toBe("a");
    expect(ids(filtered(rows, "flux", {}))).toBe("c");
    expect(ids(filtered(rows, "", { owner: "me", recipe: "tiny-lora@1" }))).toBe("b");
    expect(ids(filtered(rows, "", { state: NEEDS_YOU }))).toBe("b");
  });

  it("offers the values that occur", () => {
    expect(choicesOf(rows, "owner")).toEqual(["ann", "me"]);
    expect(choicesOf(rows, "state")).toEqual([NEEDS_YOU, "Completed", "Stalled", "Training"]);
  });

  it("puts those that need somebody first, and unknown values last either way", () => {
    expect(ids(sorted(rows, null))).toBe("b a c");
    expect(ids(sorted(rows, "cost"))).toBe("b c a");
    expect(ids(sorted(rows, "-cost"))).toBe("a c b");
    expect(ids(sorted(rows, "loss"))).toBe("a c b");
    expect(ids(sorted(rows, "-loss"))).toBe("a c b");
    expect(ids(sorted(rows, "no such column"))).toBe("b a c");
  });

  it("groups them in the order in which they come", () => {
    expect(grouped(rows, "gpu").map((group) => `${group.name}: ${ids(group.rows)}`)).toEqual([
      "RTX 4090: a c",
      "none yet: b",
    ]);
    expect(grouped(rows, null)).toEqual([{ name: "", rows }]);
  });
});

describe("the progress in the title", () => {
  const ended = row("old", { ended_at: "2026-11-17T11:00:00+00:00", shown: "COMPLETED" });

  it("is that of the training on the page, or of the only one that runs", () => {
    expect(progressToShow([row("a", { percent: 62.4 }), ended], null)).toEqual({ text: "62\u00a0%", percent: 62 });
    expect(progressToShow([row("a"), row("b", { percent: 7 })], "b")).toEqual({ text: "7\u00a0%", percent: 7 });
    expect(progressToShow([row("a"), ended], "old")).toEqual({ text: "", percent: null });
  });

  it("is their number if there are several, and nothing if there are none", () => {
    expect(progressToShow([row("a"), row("b")], null)).toEqual({ text: "2 running", percent: null });
    expect(progressToShow([ended, row("q", { shown: "QUEUED" })], null)).toEqual({ text: "", percent: null });
    expect(progressToShow([row("a", { percent: null })], null)).toEqual({ text: "", percent: null });
  });
});

describe("a sparkline", () => {
  it("reaches from the bottom to the top of its box, however flat or high the values are", () => {
    expect(pathOf([1, 3, 2], 80, 20)).toBe("M0.0 19.0L40.0 1.0L80.0 10.0");
    expect(pathOf([5, 5], 80, 20)).toBe("M0.0 19.0L80.0 19.0");
  });
});
