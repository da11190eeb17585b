import { describe, expect, test } from "vitest";
import { columnsOf, placesOf } from "~/charts/plotData";
import { around } from "~/charts/plotKeys";
import { aligned, extentOf, sliderValue } from "~/charts/series";
import { smoothed, usualSpan } from "~/charts/smoothing";
import { figuresOf, summaryOf } from "~/charts/summary";

const run = (key: string, x: number[], y: (number | null)[]) => ({ key, label: key, x, y });

describe("smoothing", () => {
  test("keeps a constant", () => {
    expect(smoothed([1, 2, 3, 4], [5, 5, 5, 5], 10)).toEqual([5, 5, 5, 5]);
  });

  test("begins with the first value and follows slowly", () => {
    const made = smoothed([0, 1, 2, 3], [1, 1, 0, 0], 3) as number[];
    expect(made[0]).toBe(1);
    expect(made[2]).toBeLessThan(0.5);
    expect(made[3]).toBeLessThan(made[2] as number);
    expect(made[3]).toBeGreaterThan(0);
  });

  test("keeps gaps as they are", () => {
    const made = smoothed([0, 1, 2, 3], [1, null, undefined, 1], 5);
    expect(made[1]).toBeNull();
    expect(made[2]).toBeUndefined();
    expect(made[3]).toBeCloseTo(1);
  });

  test("is about the same for a tenth of the points", () => {
    const x = Array.from({ length: 10_001 }, (_, place) => place);
    const y = x.map((at) => Math.exp(-at / 3000));
    const few = x.filter((at) => at % 10 === 0);
    const all = smoothed(x, y, 500) as number[];
    const thinned = smoothed(
      few,
      few.map((at) => y[at] as number),
      500,
      10_001,
    ) as number[];
    expect(thinned[500]).toBeCloseTo(all[5000] as number, 2);
  });

  test("takes a share of the run that is one of the choices", () => {
    expect([10, 300, 5000, 1e6].map(usualSpan)).toEqual([0, 5, 100, 2000]);
  });
});

describe("columns", () => {
  test("runs with the same x are not copied", () => {
    const x = [1, 2];
    const [shared, first] = aligned([run("a", x, [3, 4]), run("b", x, [5, 6])]);
    expect(shared).toBe(x);
    expect(first).toEqual([3, 4]);
  });

  test("runs with their own steps are laid over each other", () => {
    expect(aligned([run("a", [1, 3], [10, null]), run("b", [2, 3], [20, 30])])).toEqual([
      [1, 2, 3],
      [10, undefined, null],
      [undefined, 20, 30],
    ]);
  });

  test("a spike of one step is there however many points there are", () => {
    const x = Array.from({ length: 100_000 }, (_, place) => place);
    const y = x.map((at) => (at === 43_210 ? 9 : 1));
    const [, raw, smooth] = columnsOf([run("loss", x, y)], 500, false);
    expect(raw?.[43_210]).toBe(9);
    expect(smooth?.[43_210]).toBeLessThan(1.1);
  });

  test("a logarithmic axis leaves out what has no logarithm", () => {
    expect(columnsOf([run("a", [1, 2, 3], [0, 1, -1])], 0, true)[1]).toEqual([null, 1, null]);
  });

  test("says which columns are whose", () => {
    const series = [run("a", [1], [1]), { ...run("b", [1], [1]), smooth: false }, run("c", [1], [1])];
    expect(placesOf(series, 20)).toEqual([
      { raw: 1, smooth: 2 },
      { raw: 3, smooth: null },
      { raw: 4, smooth: 5 },
    ]);
  });
});

test("the extent of several runs", () => {
  expect(extentOf([run("a", [], []), run("b", [3, 9], [1, 1]), run("c", [1, 2], [1, 1])])).toEqual({ from: 1, to: 9 });
  expect(extentOf([run("a", [], [])])).toBeNull();
});

test("zooming keeps its centre in place", () => {
  expect(around(25, { from: 0, to: 100 }, 0.5)).toEqual({ from: 12.5, to: 62.5 });
});

test("a chart in words", () => {
  expect(figuresOf([null, 4, 1, undefined, 2])).toEqual({ first: 4, last: 2, lowest: 1, highest: 4 });
  const said = summaryOf([run("Loss", [1, 2], [0.5, 0.25]), run("Speed", [], [])], String);
  expect(said).toBe("Loss: first 0.5, last 0.25, lowest 0.25, highest 0.5. Speed: nothing was measured.");
});

describe("the cursor's slider", () => {
  test("has values without an exponent", () => {
    expect([7.152557373046875e-7, 7020.000000715256, 12.5].map((x) => String(sliderValue(x)))).toEqual([
      "0",
      "7020",
      "12.5",
    ]);
  });
});
