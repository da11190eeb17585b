import { describe, expect, it } from "vitest";
import { LogBook } from "~/views/job/tabs/log/LogBook";
import { levelOf, plainText, styledParts } from "~/views/job/tabs/log/logText";
import { LogSearch } from "~/views/job/tabs/log/search";

function bookOf(...texts: string[]): LogBook {
  const book = new LogBook();
  for (const text of texts) book.add({ attempt: 1, stream: "1.1", text });
  return book;
}

const linesOf = (book: LogBook) => Array.from({ length: book.length }, (_, line) => book.text(line));

describe("the lines of a log", () => {
  it("joins pieces that were cut in the middle of a line", () => {
    expect(linesOf(bookOf("one\ntw", "o\nthr", "ee"))).toEqual(["one", "two", "three"]);
  });

  it("folds the redraws of a progress bar into its last picture", () => {
    const book = bookOf(" 1%|#\r 2%|#\r", " 3%|##\r100%|####\ndone\n");
    expect(linesOf(book)).toEqual(["100%|####", "done"]);
    expect(book.redraws(0)).toBe(3);
    expect(book.redraws(1)).toBe(0);
  });

  it("keeps what a bar showed before it took itself away", () => {
    expect(linesOf(bookOf("50%|##\r      \r", "\nnext\n"))).toEqual(["50%|##", "next"]);
  });

  it("keeps the lines of two steps apart", () => {
    const book = bookOf("installing\n");
    book.add({ attempt: 1, stream: "2.1", text: "training\n" });
    expect(book.isFirstOfSource(1)).toBe(true);
    expect(book.sources.map((source) => source.firstLine)).toEqual([0, 1]);
  });

  it("knows errors and warnings", () => {
    const book = bookOf("fine\nRuntimeError: CUDA out of memory\nUserWarning: slow\n0 errors\n");
    expect([book.errors.length, book.errors.at(0)]).toEqual([1, 1]);
    expect([book.warnings.length, book.warnings.at(0)]).toEqual([1, 2]);
    expect(levelOf("\x1b[31merror: no such file\x1b[0m")).toBe("error");
    expect(levelOf("mirror: all well")).toBeNull();
  });
});

describe("the text of a line", () => {
  it("keeps colours as tones and drops every other escape sequence", () => {
    expect(styledParts("\x1b[1;31mbad\x1b[0m \x1b[38;5;2mplain\x1b[2J\x1b]0;title\x07!")).toEqual([
      { text: "bad", tone: "bad", bold: true },
      { text: " ", tone: "plain", bold: false },
      { text: "plain", tone: "plain", bold: false },
      { text: "!", tone: "plain", bold: false },
    ]);
  });

  it("shows what would change the direction or hide", () => {
    expect(plainText("a\u202eb\u200bc\x00d")).toBe("a⟨U+202E⟩b⟨U+200B⟩c␀d");
  });
});

describe("the search in a log", () => {
  it("finds text in any case, through colours, and goes on where it stopped", () => {
    const book = bookOf("Loss 0.5\nother\n\x1b[31mlo\x1b[0mss 0.4\n");
    const search = new LogSearch("loss");
    expect(search.goOn(book)).toBe(true);
    expect([search.matches.at(0), search.matches.at(1), search.matches.length]).toEqual([0, 2, 2]);
    book.add({ attempt: 1, stream: "1.1", text: "loss again\n" });
    search.goOn(book);
    expect(search.matches.length).toBe(3);
    expect([search.matches.next(2, 1), search.matches.next(3, 1), search.matches.next(0, -1)]).toEqual([3, 0, 3]);
  });

  it("takes the wanted text as it is, not as a pattern", () => {
    const search = new LogSearch("a.c(");
    expect([search.has("abc("), search.has("a.c(d")]).toEqual([false, true]);
    expect(search.places("xa.c( A.C(")).toEqual([
      [1, 5],
      [6, 10],
    ]);
  });
});
