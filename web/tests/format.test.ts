import { describe, expect, test } from "vitest";
import { bytes, dollars, dollarsPerHour, duration, figure, memoryOf, percent, relative, speed } from "~/text/format";

describe("numbers as people read them", () => {
  test.each([
    [1.239, "$1.24"],
    [0.0031, "$0.003"],
    [0.052, "$0.05"],
    [0, "$0.00"],
    [1204.4, "$1,204"],
    [-2, "−$2.00"],
    [null, "–"],
  ])("%s dollars is %s", (usd, text) => expect(dollars(usd)).toBe(text));

  test.each([
    [48, "48 s"],
    [59.6, "1 min"],
    [3599, "1 h"],
    [8040, "2 h 14 min"],
    [273600, "3 d 4 h"],
    [null, "–"],
    [Number.NaN, "–"],
  ])("%s seconds is %s", (seconds, text) => expect(duration(seconds)).toBe(text));

  test("an unknown or endless value is never a zero", () => {
    expect([figure(null), figure("NaN"), percent(undefined), speed("Infinity"), bytes(null)]).toEqual([
      "–",
      "not a number",
      "–",
      "–",
      "–",
    ]);
  });

  test("four significant digits", () => {
    expect([figure(0.084123), figure(0.00012), figure(12345.6)]).toEqual(["0.08412", "1.2e-4", "12,346"]);
  });

  test("speed turns round when a step takes longer than a second", () => {
    expect([speed(7.43), speed(0.31)]).toEqual(["7.4 steps/s", "3.2 s/step"]);
  });

  test("memory with what there is", () => {
    expect(memoryOf(18.2, 24)).toBe("18.2 / 24.0 GB (76\u00a0%)");
  });

  test("times relative to now", () => {
    expect([relative(0, 180_000), relative(7_200_000, 0), relative(0, 1_000)]).toEqual([
      "3 min ago",
      "in 2 h",
      "just now",
    ]);
    const hours = (count: number) => relative(0, count * 3_600_000);
    expect([hours(1.2), hours(28.5), hours(109)]).toEqual(["1 h ago", "29 h ago", "5 d ago"]);
  });

  test("prices per hour keep a tenth of a cent", () => {
    expect([dollarsPerHour(0.0823), dollarsPerHour(0.31)]).toEqual(["$0.082/h", "$0.31/h"]);
  });
});
