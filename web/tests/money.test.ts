import { expect, test } from "vitest";
import { change, credits, typedMicros } from "~/views/money/credits/amounts";
import { type CostRow, difference, grouped } from "~/views/money/grouping";

const row = (id: string, cost_usd: number, changed: Partial<CostRow> = {}): CostRow => ({
  id,
  name: `name of ${id}`,
  owner: null,
  recipe: "tiny-lora@1",
  provider: "vastai",
  shown: "COMPLETED",
  ended_at: "2026-11-17T05:00:00Z",
  cost_usd,
  quoted_usd: 1,
  ...changed,
});

test("costs are summed up by what trainings have in common, the dearest first", () => {
  const rows = [row("a", 1), row("b", 2, { owner: "ann" }), row("c", 4, { owner: "ann", ended_at: null })];
  const [ann, me] = grouped(rows, "user");
  expect([ann?.name, ann?.count, ann?.costUsd]).toEqual(["ann", 2, 6]);
  expect([me?.name, me?.costUsd]).toEqual(["me", 1]);
  expect(grouped(rows, "training").map((group) => group.key)).toEqual(["c", "b", "a"]);
  expect(grouped(rows, "recipe")).toHaveLength(1);
});

test("only trainings that have ended are compared with their quotes", () => {
  const [group] = grouped([row("a", 3), row("b", 5, { ended_at: null }), row("c", 7, { quoted_usd: 0 })], "provider");
  expect([group?.costUsd, group?.endedUsd, group?.quotedUsd]).toEqual([15, 3, 1]);
});

test("a difference says its direction, and nothing without a quote", () => {
  expect([difference(1.1, 1), difference(0.5, 1), difference(1, 1), difference(1, 0)]).toEqual([
    "+10 %",
    "−50 %",
    "as quoted",
    null,
  ]);
});

test("credits are shown exactly, as dollars or points", () => {
  expect(credits(1_500_000, null)).toBe("$1.50");
  expect(credits(-1, null)).toBe("−$0.000001");
  expect(credits(1_500_000, 10_000)).toBe("15,000 points");
  expect(change(2_000_000, null)).toBe("+$2.00");
});

test("typed amounts become whole micro-dollars, or nothing", () => {
  expect(typedMicros("1.5", null)).toBe(1_500_000);
  expect(typedMicros("$1,200", null)).toBe(1_200_000_000);
  expect(typedMicros("-3", null)).toBe(-3_000_000);
  expect(typedMicros("15,000", 10_000)).toBe(1_500_000);
  for (const wrong of ["", "abc", "1e9", "0", "1.2345678", "99999999999999999999"]) {
    expect(typedMicros(wrong, null)).toBeNull();
  }
});
