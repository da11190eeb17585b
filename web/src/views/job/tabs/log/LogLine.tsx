import { bytes, count } from "~/text/format";
import styles from "./Log.module.css";
import { type Level, type Part, styledParts } from "./logText";
import type { LogSearch } from "./search";

const LONGEST = 2_000;

interface Props {
  readonly number: number;
  readonly text: string;
  readonly level: Level;
  readonly redraws: number;
  readonly search: LogSearch;
  readonly isChosen: boolean;
  readonly onChoose: () => void;
  readonly onWhole: () => void;
}

export function LogLine({ number, text, level, redraws, search, isChosen, onChoose, onWhole }: Props) {
  const isCut = text.length > LONGEST;
  const classes = [styles.line, level === null ? "" : styles[level], isChosen ? styles.chosen : ""].join(" ");
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents lint/a11y/noStaticElementInteractions: the list chooses lines by the arrow keys
    <div className={classes} data-line={number} onClick={onChoose}>
      <span className={styles.number}>{number}</span>
      <span className={styles.mark}>
        {level === null ? null : <span title={level}>{level === "error" ? "✕" : "▲"}</span>}
        {level === null ? null : <span className="visually-hidden">{level}</span>}
      </span>
      <code className={styles.text}>
        {styledParts(isCut ? text.slice(0, LONGEST) : text).map((part, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a line have nothing else to be told apart by
          <Styled key={at} part={part} search={search} />
        ))}
      </code>
      {redraws > 0 ? (
        <span
          className={styles.note}
          title={`${count(redraws)} earlier states of this progress bar are folded into it`}
        >
          ↻ {count(redraws)}
        </span>
      ) : null}
      {isCut ? (
        <button type="button" className={styles.all} onClick={onWhole}>
          show all ({bytes(text.length)})
        </button>
      ) : null}
    </div>
  );
}

function Styled({ part, search }: { readonly part: Part; readonly search: LogSearch }) {
  const classes = [styles[`tone-${part.tone}`], part.bold ? styles.bold : ""].filter(Boolean).join(" ");
  return <span className={classes || undefined}>{marked(part.text, search)}</span>;
}

function marked(text: string, search: LogSearch) {
  const places = search.places(text);
  if (places.length === 0) return text;
  let from = 0;
  const parts = places.flatMap(([start, end]) => {
    const before = text.slice(from, start);
    from = end;
    return [before, <mark key={start}>{text.slice(start, end)}</mark>];
  });
  return [...parts, text.slice(from)];
}
