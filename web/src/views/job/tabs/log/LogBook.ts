/** All lines of a log. Progress bars that redraw themselves are one line each; a million lines fit. */
import { GrowingNumbers } from "./GrowingNumbers";
import { type Level, levelOf } from "./logText";

export interface Piece {
  readonly attempt: number;
  readonly stream: string;
  readonly text: string;
}

export interface Source {
  readonly attempt: number;
  /** Step and try, as in "1.1". */
  readonly stream: string;
  readonly firstLine: number;
}

/** A line that may still grow. */
interface Open {
  readonly line: number;
  /** What follows the last carriage return. */
  tail: string;
  /** How the line looked before that. */
  drawn: string;
  redraws: number;
}

const LEVELS: readonly Level[] = [null, "warning", "error"];

export class LogBook {
  readonly sources: Source[] = [];
  readonly errors = new GrowingNumbers();
  readonly warnings = new GrowingNumbers();
  /** Characters as they came, redraws included. */
  size = 0;
  readonly #texts: string[] = [];
  readonly #sourceOf = new GrowingNumbers();
  readonly #levels = new GrowingNumbers();
  /** Few lines are redrawn. */
  readonly #redraws = new Map<number, number>();
  readonly #open = new Map<string, Open>();
  readonly #numbers = new Map<string, number>();

  get length(): number {
    return this.#texts.length;
  }

  text(line: number): string {
    return this.#texts[line] ?? "";
  }

  level(line: number): Level {
    return LEVELS[this.#levels.at(line)] ?? null;
  }

  /** How many earlier pictures of this line are folded into it. */
  redraws(line: number): number {
    return this.#redraws.get(line) ?? 0;
  }

  sourceOf(line: number): Source | undefined {
    return this.sources[this.#sourceOf.at(line)];
  }

  /** Whether another step or try wrote the line before. */
  isFirstOfSource(line: number): boolean {
    return line === 0 || this.#sourceOf.at(line) !== this.#sourceOf.at(line - 1);
  }

  add({ attempt, stream, text }: Piece): void {
    this.size += text.length;
    const name = `${attempt} ${stream}`;
    let from = 0;
    for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", from)) {
      const line = this.#open.get(name) ?? this.#begin(attempt, stream);
      this.#grow(line, text.slice(from, end));
      this.#close(line);
      this.#open.delete(name);
      from = end + 1;
    }
    if (from === text.length) return;
    const rest = this.#open.get(name) ?? this.#begin(attempt, stream);
    this.#grow(rest, text.slice(from));
    this.#open.set(name, rest);
  }

  /** Nothing more will come: the last line is whole, even without an end. */
  end(): void {
    for (const open of this.#open.values()) this.#close(open);
    this.#open.clear();
  }

  #begin(attempt: number, stream: string): Open {
    const line = this.#texts.length;
    const name = `${attempt} ${stream}`;
    let number = this.#numbers.get(name);
    if (number === undefined) {
      number = this.sources.push({ attempt, stream, firstLine: line }) - 1;
      this.#numbers.set(name, number);
    }
    const open: Open = { line, tail: "", drawn: "", redraws: 0 };
    this.#texts.push("");
    this.#sourceOf.push(number);
    this.#levels.push(0);
    return open;
  }

  #grow(open: Open, text: string): void {
    let from = 0;
    for (let end = text.indexOf("\r"); end !== -1; end = text.indexOf("\r", from)) {
      const drawn = open.tail + text.slice(from, end);
      open.tail = "";
      // A bar that takes itself away draws spaces: what it showed before is worth more.
      if (drawn.trim() !== "") {
        open.drawn = drawn;
        open.redraws += 1;
      }
      from = end + 1;
    }
    open.tail += from === 0 ? text : text.slice(from);
    const hasTail = open.tail.trim() !== "";
    this.#texts[open.line] = hasTail || open.drawn === "" ? open.tail : open.drawn;
    const folded = open.redraws - (hasTail ? 0 : 1);
    if (folded > 0) this.#redraws.set(open.line, folded);
  }

  #close(open: Open): void {
    const level = levelOf(this.text(open.line));
    if (level === null) return;
    this.#levels.set(open.line, LEVELS.indexOf(level));
    (level === "error" ? this.errors : this.warnings).push(open.line);
  }
}
