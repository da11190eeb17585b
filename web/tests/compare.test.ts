import { describe, expect, it } from "vitest";
import { stringifySearch } from "~/search";
import { jobsIn, slotsOf } from "~/views/compare/comparedJobs";

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
