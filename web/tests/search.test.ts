import { expect, test } from "vitest";
import { type Entry, found, match } from "~/frame/search/entries";

const entry = (label: string, group = "Trainings", more: Partial<Entry> = {}): Entry => ({
  id: label,
  group,
  label,
  run: () => undefined,
  ...more,
});

test("every word must occur, in any order and case", () => {
  expect(match("Cats of Version 3", "3 cats")).not.toBeNull();
  expect(match("Cats of Version 3", "cats dogs")).toBeNull();
  expect(match("anything", "")).toBe(0);
});

test("a match at the beginning is better than one inside a word", () => {
  const names = found([entry("concats"), entry("my cats"), entry("cats-v3")], "cat").map((each) => each.label);
  expect(names).toEqual(["cats-v3", "my cats", "concats"]);
});

test("a match of the label goes before one of the details", () => {
  const entries = [entry("a", "Models", { detail: "tiny-lora@1" }), entry("a tiny one", "Models")];
  expect(found(entries, "tiny").map((each) => each.label)).toEqual(["a tiny one", "a"]);
});

test("no group takes all the room, and groups keep their order", () => {
  const many = Array.from({ length: 20 }, (_, place) => entry(`job ${place}`));
  const shown = found([...many, entry("job board", "Views")], "job");
  expect(shown).toHaveLength(7);
  expect(shown.at(-1)?.group).toBe("Views");
});
