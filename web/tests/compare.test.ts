import { describe, expect, it } from "vitest";
import { stringifySearch } from "~/search";
import { jobsIn, slotsOf } from "~/views/compare/comparedJobs";
import { zoomOf, zoomText } from "~/views/compare/zoom";

describe("the jobs of an address", () => {
  it("are written as the same parameter several times", () => {
    expect(stringifySearch({ jobs: ["a", "b"], log: 1 })).toBe("?log=1&jobs=a&jobs=b");
    expect(stringifySearch({ jobs: undefined })).toBe("");
  });

  it("are each there once, also if their ids look like numbers", () => {
    expect(jobsIn(["a", 12, "a"])).toEqual(["a", "12"]);
    expect(jobsIn("a")).toEqual(["a"]);
    expect(jobsIn(undefined)).toEqual([]);
  });
});

describe("the zoom in the address", () => {
  it("is whole steps, or tenths of a second, around what was chosen", () => {
    expect(zoomText({ from: 200.7, to: 449.2 }, 0)).toBe("200-450");
    expect(zoomText({ from: 12.54, to: 90 }, 1)).toBe("12.5-90.0");
    expect(zoomText({ from: -3, to: -1 }, 0)).toBe("0-1");
    expect(zoomText(null, 0)).toBeNull();
  });

  it("is read back, and anything else is none", () => {
    expect(zoomOf(zoomText({ from: 0.31, to: 0.39 }, 1))).toEqual({ from: 0.3, to: 0.4 });
    for (const text of [null, "", "5", "9-3", "a-b", "-3-4", "1-1"]) expect(zoomOf(text)).toBeNull();
  });
});

describe("the colours of runs", () => {
  it("stay when runs change places, come and go", () => {
    const first = slotsOf(["a", "b", "c"], new Map());
    expect([...first]).toEqual([
      ["a", 1],
      ["b", 2],
      ["c", 3],
    ]);
    const moved = slotsOf(["c", "a", "d"], first);
    expect(Object.fromEntries(moved)).toEqual({ c: 3, a: 1, d: 2 });
  });
});
