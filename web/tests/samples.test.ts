import { describe, expect, test } from "vitest";
import type { Artifact } from "~/api/documents";
import { allPrompts, downloadAddress, nearestStep, samplesOf, thumbnailAddress } from "~/views/job/samples/samples";

function sample(step: number | null, number: number, more: Partial<Artifact> = {}): Artifact {
  return {
    attempt: 1,
    path: `output/samples/${step}_${number}.png`,
    kind: "sample",
    size: 1,
    step,
    sha256: "ab",
    verified: true,
    is_available: true,
    is_image: true,
    prompt_number: number,
    prompt: `prompt ${number}`,
    ...more,
  };
}

describe("samples by prompt and step", () => {
  test("steps are in order and every prompt comes once", () => {
    const set = samplesOf("j", [sample(1000, 1), sample(50, 0), sample(1000, 0), sample(50, 1)]);
    expect(set.steps).toEqual([50, 1000]);
    expect(set.prompts.map((prompt) => prompt.text)).toEqual(["prompt 0", "prompt 1"]);
    expect(set.at(1000, "prompt 1")?.path).toBe("output/samples/1000_1.png");
    expect(set.at(2000, "prompt 1")).toBeNull();
  });

  test("a later attempt that made the same sample again counts", () => {
    const again = sample(50, 0, { attempt: 2, path: "again.png" });
    expect(samplesOf("j", [again, sample(50, 0)]).at(50, "prompt 0")?.path).toBe("again.png");
  });

  test("what is no picture or not at home is not shown", () => {
    const hidden = [{ is_image: false }, { is_available: false }, { kind: "checkpoint" }];
    expect(
      samplesOf(
        "j",
        hidden.map((why, at) => sample(at, 0, why)),
      ).steps,
    ).toEqual([]);
  });

  test("two samples of one prompt stay two, and those without a prompt have a number", () => {
    const same = samplesOf("j", [sample(1, 0, { prompt: "cat" }), sample(1, 1, { prompt: "cat" })]);
    expect(same.prompts.map((prompt) => prompt.key)).toEqual(["cat", "#1"]);
    const unnamed = samplesOf("j", [sample(1, 0, { prompt: null })]);
    expect(unnamed.prompts).toEqual([{ key: "#0", text: "Sample 1" }]);
  });

  test("samples without a step come last", () => {
    expect(samplesOf("j", [sample(null, 0), sample(0, 0)]).steps).toEqual([0, null]);
  });

  test("the nearest step stands in for one that has no samples", () => {
    const set = samplesOf("j", [sample(0, 0), sample(500, 0), sample(1000, 0)]);
    expect([nearestStep(set, null), nearestStep(set, 0), nearestStep(set, 740)]).toEqual([1000, 0, 500]);
  });

  test("runs are compared by what their prompts say", () => {
    const [one, two] = [samplesOf("a", [sample(1, 0)]), samplesOf("b", [sample(1, 4, { prompt: "prompt 0" })])];
    expect(allPrompts([one, two]).length).toBe(1);
    expect(two.at(1, "prompt 0")?.job).toBe("b");
  });

  test("a hostile name stays one path of the address", () => {
    const odd = { job: "j", attempt: 1, path: "out/a b?x=#/é.png", sha256: null };
    expect(thumbnailAddress(odd, 256)).toBe(
      "/api/jobs/j/thumbnails/out/a%20b%3Fx%3D%23/%C3%A9.png?width=256&attempt=1&exact=true",
    );
    expect(downloadAddress(odd)).toBe("/api/jobs/j/artifacts/out/a%20b%3Fx%3D%23/%C3%A9.png?attempt=1&exact=true");
  });
});
