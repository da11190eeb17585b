/** The lines of a log: only those in sight exist in the page. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { Button } from "~/design/Button";
import { counted } from "~/text/format";
import styles from "./Log.module.css";
import type { LogBook, Source } from "./LogBook";
import { LogLine } from "./LogLine";
import type { LogSearch } from "./search";
import { WholeLine } from "./WholeLine";

const ROW = 20;
const NEAR = 32;

interface Props {
  readonly book: LogBook;
  readonly version: number;
  readonly search: LogSearch;
  readonly chosen: number | null;
  readonly onChoose: (line: number) => void;
  readonly wraps: boolean;
  /** Whether lines may still come. */
  readonly isGrowing: boolean;
  readonly isFollowing: boolean;
  readonly onFollow: (follow: boolean) => void;
  readonly nameOf: (source: Source) => string;
}

export function LogLines(props: Props) {
  const { book, version, search, chosen, onChoose, wraps, isGrowing, isFollowing, onFollow, nameOf } = props;
  const place = useRef<HTMLDivElement>(null);
  const lastTop = useRef(0);
  const [seen, setSeen] = useState(book.length);
  const [whole, setWhole] = useState<number | null>(null);
  const rows = useVirtualizer({
    count: book.length,
    getScrollElement: () => place.current,
    estimateSize: useCallback((line: number) => (book.isFirstOfSource(line) ? 2 * ROW : ROW), [book]),
    overscan: 24,
  });

  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever lines were added, the last one is shown
  useLayoutEffect(() => {
    if (!isFollowing) return;
    setSeen(book.length);
    const list = place.current;
    if (list) list.scrollTop = list.scrollHeight;
  }, [isFollowing, version, wraps, book]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: a log that is still loading may get the line later
  useEffect(() => {
    if (chosen !== null && chosen < book.length && !isFollowing) rows.scrollToIndex(chosen, { align: "center" });
  }, [chosen, chosen !== null && chosen < book.length, wraps]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: heights that were measured belong to the other way
  useEffect(() => rows.measure(), [wraps]);

  function onScroll(): void {
    const list = place.current;
    if (!list) return;
    const isUp = list.scrollTop < lastTop.current;
    lastTop.current = list.scrollTop;
    const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < NEAR;
    if (isAtEnd && !isFollowing && !isUp) onFollow(true);
    else if (isUp && !isAtEnd && isFollowing) {
      setSeen(book.length);
      onFollow(false);
    }
  }

  function onKeyDown(event: KeyboardEvent): void {
    const way = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (way === 0 || event.target !== place.current) return;
    event.preventDefault();
    const from = chosen ?? rows.range?.startIndex ?? 0;
    onChoose(Math.min(book.length - 1, Math.max(0, from + way)));
  }

  const unseen = book.length - seen;
  return (
    <div className={styles.frame}>
      <div
        ref={place}
        className={styles.lines}
        role="log"
        // Lines come faster than a screen reader can read; the toolbar says what changes.
        aria-live="off"
        aria-label="Lines of the log"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        tabIndex={0}
        onScroll={onScroll}
        onKeyDown={onKeyDown}
      >
        <div className={wraps ? styles.wrapped : styles.sheet} style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map((row) => (
            <div
              key={row.key}
              ref={wraps ? rows.measureElement : undefined}
              data-index={row.index}
              className={styles.row}
              style={{ transform: `translateY(${row.start}px)` }}
            >
              {book.isFirstOfSource(row.index) ? <Divider source={book.sourceOf(row.index)} nameOf={nameOf} /> : null}
              <LogLine
                number={row.index + 1}
                text={book.text(row.index)}
                level={book.level(row.index)}
                redraws={book.redraws(row.index)}
                search={search}
                isChosen={row.index === chosen}
                onChoose={() => onChoose(row.index)}
                onWhole={() => setWhole(row.index)}
              />
            </div>
          ))}
        </div>
      </div>
      {isFollowing ? null : (
        <Button className={styles.follow} onClick={() => onFollow(true)}>
          ▼ {isGrowing ? "Follow" : "To the end"}
          {unseen > 0 ? ` (${counted(unseen, "new line")})` : ""}
        </Button>
      )}
      {whole === null ? null : <WholeLine number={whole + 1} text={book.text(whole)} onClose={() => setWhole(null)} />}
    </div>
  );
}

function Divider({ source, nameOf }: { readonly source: Source | undefined; readonly nameOf: Props["nameOf"] }) {
  return <div className={styles.divider}>{source ? nameOf(source) : null}</div>;
}
