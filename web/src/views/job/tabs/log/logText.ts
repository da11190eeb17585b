// biome-ignore-all lint/suspicious/noControlCharactersInRegex: escape sequences are made of control characters
/** Text of a log as a person may see it. It comes from a machine that is not trusted: styles stay, control sequences go. */

export type Level = "error" | "warning" | null;
export type Tone = "plain" | "bad" | "attention" | "good" | "blue" | "quiet";

export interface Part {
  readonly text: string;
  readonly tone: Tone;
  readonly bold: boolean;
}

const ESCAPE =
  /\x1b(?:\[([0-9:;<=>?]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])/g;
const UNSEEN = /[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]/gu;

const TONES: Readonly<Record<number, Tone>> = { 1: "bad", 2: "good", 3: "attention", 4: "blue", 5: "blue", 6: "blue" };

/** The text without escape sequences; what a terminal would obey silently is made visible. */
export function plainText(raw: string): string {
  return visible(raw.includes("\x1b") ? raw.replace(ESCAPE, "") : raw);
}

/** The same in parts of one style. */
export function styledParts(raw: string): readonly Part[] {
  if (!raw.includes("\x1b")) return [{ text: visible(raw), tone: "plain", bold: false }];
  const parts: Part[] = [];
  let style: Omit<Part, "text"> = { tone: "plain", bold: false };
  let from = 0;
  const put = (text: string) => text !== "" && parts.push({ text: visible(text), ...style });
  for (const found of raw.matchAll(ESCAPE)) {
    put(raw.slice(from, found.index));
    from = found.index + found[0].length;
    if (found[2] === "m") style = styleAfter(style, found[1] ?? "");
  }
  put(raw.slice(from));
  return parts;
}

function styleAfter(style: Omit<Part, "text">, codes: string): Omit<Part, "text"> {
  let { tone, bold } = style;
  const numbers = codes.split(/[;:]/).map(Number);
  for (let at = 0; at < numbers.length; at++) {
    const code = numbers[at] ?? 0;
    if (code === 0) [tone, bold] = ["plain", false];
    else if (code === 1) bold = true;
    else if (code === 2) tone = "quiet";
    else if (code === 22) bold = false;
    else if (code === 39) tone = "plain";
    // Colours of 256 or of all colours have their own numbers behind them, which are no codes.
    else if (code === 38 || code === 48) at += numbers[at + 1] === 5 ? 2 : 4;
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) tone = TONES[code % 10] ?? "plain";
  }
  return { tone, bold };
}

function visible(text: string): string {
  return text.replace(UNSEEN, (character) => {
    const code = character.codePointAt(0) ?? 0;
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    return code === 0x7f ? "␡" : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

const LOOKED_AT = 4_000;
const HINT = /err|exce|traceback|fatal|critical|fault|killed|memory|warn|deprec/i;
const ERROR =
  /\b(?:[A-Za-z_.]*(?:Error|Exception)|ERRORS?|FATAL|CRITICAL)\b|\berror(?:\[|:|\s+\d|$)|^Traceback \(most recent|\bout of memory\b|\bsegmentation fault\b|^Killed\b|\bfatal:/;
const NO_ERROR = /\b(?:0|no|without) (?:errors?|exceptions?)\b/i;
const WARNING = /\b(?:[A-Za-z]*Warning|WARN(?:ING)?|warn(?:ing)?|deprecated)\b/;

/** Whether a line reports an error or a warning, by the words that programs use for them. */
export function levelOf(raw: string): Level {
  const text = raw.length > LOOKED_AT ? raw.slice(0, LOOKED_AT) : raw;
  if (!HINT.test(text)) return null;
  const plain = plainText(text);
  // A warning's own line often names the kind of error that it warns of.
  if (WARNING.test(plain) && !plain.startsWith("Traceback")) return "warning";
  return ERROR.test(plain) && !NO_ERROR.test(plain) ? "error" : null;
}
