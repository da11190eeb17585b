/** Finds a text in the lines of a log, a slice at a time so that the page stays quick. */
import { GrowingNumbers } from "./GrowingNumbers";
import type { LogBook } from "./LogBook";
import { plainText } from "./logText";

const SLICE_MS = 12;
const LINES_AT_ONCE = 2_000;

export class LogSearch {
  readonly matches = new GrowingNumbers();
  #searched = 0;
  readonly #pattern: RegExp | null;

  constructor(readonly wanted: string) {
    this.#pattern = wanted === "" ? null : new RegExp(wanted.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), "i");
  }

  /** Looks at lines that were not looked at before, for a few milliseconds. True: there are none left. */
  goOn(book: LogBook): boolean {
    const until = performance.now() + SLICE_MS;
    while (this.#searched < book.length) {
      const end = Math.min(book.length, this.#searched + LINES_AT_ONCE);
      for (; this.#searched < end; this.#searched++)
        if (this.has(book.text(this.#searched))) this.matches.push(this.#searched);
      if (performance.now() > until) return this.#searched >= book.length;
    }
    return true;
  }

  has(raw: string): boolean {
    if (this.#pattern === null) return false;
    return this.#pattern.test(raw.includes("\x1b") ? plainText(raw) : raw);
  }

  /** Where the text occurs in a text that is shown. */
  places(text: string): readonly (readonly [number, number])[] {
    if (this.#pattern === null) return [];
    const found = text.matchAll(new RegExp(this.#pattern.source, "gi"));
    return [...found].map(({ index, 0: word }) => [index, index + word.length] as const);
  }
}
