import styles from "./Caption.module.css";

interface Props {
  readonly text: string | null | undefined;
  readonly trigger: string;
  readonly isExpected: boolean;
}

const MOST_LETTERS = 160;

/** A caption with the trigger word marked; a missing one is said. */
export function Caption({ text, trigger, isExpected }: Props) {
  if (text === undefined) return <p className={styles.caption}>…</p>;
  if (text === null || text === "") return isExpected ? <p className={styles.missing}>▲ no caption</p> : null;
  const shown = text.length > MOST_LETTERS ? `${text.slice(0, MOST_LETTERS)}…` : text;
  return (
    <p className={styles.caption} title={text}>
      {partsOf(shown, trigger).map(({ at, words, isTrigger }) =>
        isTrigger ? (
          <mark key={at} className={styles.trigger}>
            {words}
          </mark>
        ) : (
          <span key={at}>{words}</span>
        ),
      )}
    </p>
  );
}

/** The text in pieces: the trigger, whole words only, and what is between. */
export function partsOf(text: string, trigger: string) {
  const word = trigger.trim();
  if (word === "") return [{ at: 0, words: text, isTrigger: false }];
  const escaped = word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const found: { at: number; words: string; isTrigger: boolean }[] = [];
  let at = 0;
  for (const match of text.matchAll(new RegExp(`(?<![\\p{L}\\p{N}_])${escaped}(?![\\p{L}\\p{N}_])`, "giu"))) {
    if (match.index > at) found.push({ at, words: text.slice(at, match.index), isTrigger: false });
    found.push({ at: match.index, words: match[0], isTrigger: true });
    at = match.index + match[0].length;
  }
  if (at < text.length) found.push({ at, words: text.slice(at), isTrigger: false });
  return found;
}
