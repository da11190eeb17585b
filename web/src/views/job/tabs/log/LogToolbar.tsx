import type { KeyboardEvent } from "react";
import type { Job } from "~/api/documents";
import { Button } from "~/design/Button";
import { useSay } from "~/design/Toasts";
import { count, counted } from "~/text/format";
import { downloadLog } from "./downloadLog";
import type { GrowingNumbers } from "./GrowingNumbers";
import styles from "./Log.module.css";
import type { Source } from "./LogBook";
import type { FeedState, LogFeed } from "./LogFeed";
import { plainText } from "./logText";
import type { LogSearch } from "./search";

interface Props {
  readonly job: Job;
  readonly feed: LogFeed;
  readonly search: LogSearch;
  readonly wanted: string;
  readonly onWanted: (text: string) => void;
  readonly chosen: number | null;
  readonly onGoTo: (line: number) => void;
  readonly wraps: boolean;
  readonly onWraps: (wraps: boolean) => void;
  readonly nameOf: (source: Source) => string;
}

export function LogToolbar(props: Props) {
  const { job, feed, search, wanted, chosen, onGoTo } = props;
  const say = useSay();
  const { book } = feed;

  function jump(among: GrowingNumbers, way: 1 | -1): void {
    const line = among.next(chosen ?? (way === 1 ? -1 : book.length), way);
    if (line !== null) onGoTo(line);
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.key === "Enter") jump(search.matches, event.shiftKey ? -1 : 1);
    if (event.key === "Escape") props.onWanted("");
  }

  function copy(text: string, what: string): void {
    navigator.clipboard.writeText(text).then(
      () => say(`Copied ${what}`),
      () => say(`The browser does not allow copying ${what}`),
    );
  }

  return (
    <div className={styles.toolbar}>
      <input
        type="search"
        className={styles.search}
        aria-label="Search the log"
        placeholder="Search the log"
        maxLength={200}
        value={wanted}
        onChange={(event) => props.onWanted(event.target.value)}
        onKeyDown={onKeyDown}
      />
      {wanted === "" ? null : (
        <span className={styles.group}>
          <output>{placeOf(chosen, search.matches)}</output>
          <Button disabled={search.matches.length === 0} onClick={() => jump(search.matches, -1)}>
            Previous
          </Button>
          <Button disabled={search.matches.length === 0} onClick={() => jump(search.matches, 1)}>
            Next
          </Button>
        </span>
      )}
      <Button disabled={book.errors.length === 0} onClick={() => jump(book.errors, 1)}>
        <span aria-hidden className={styles.errorMark}>
          ✕
        </span>
        Errors ({count(book.errors.length)})
      </Button>
      <Button disabled={book.warnings.length === 0} onClick={() => jump(book.warnings, 1)}>
        <span aria-hidden className={styles.warningMark}>
          ▲
        </span>
        Warnings ({count(book.warnings.length)})
      </Button>
      <StepChoice {...props} />
      <label className={styles.group}>
        <input type="checkbox" checked={props.wraps} onChange={(event) => props.onWraps(event.target.checked)} /> Wrap
      </label>
      <span className={styles.end}>
        <span className="quiet">
          {counted(book.length, "line")} <span role="status">{STATES[feed.state]}</span>
        </span>
        {chosen === null ? null : (
          <>
            <Button onClick={() => copy(window.location.href, `the link to line ${count(chosen + 1)}`)}>
              Copy link
            </Button>
            <Button onClick={() => copy(plainText(book.text(chosen)), `line ${count(chosen + 1)}`)}>Copy line</Button>
          </>
        )}
        <Button onClick={() => void downloadLog(job).then(say, () => say("The log could not be downloaded"))}>
          Download
        </Button>
      </span>
    </div>
  );
}

function StepChoice({ feed, onGoTo, nameOf }: Props) {
  const { sources } = feed.book;
  if (sources.length < 2) return null;
  return (
    <select
      className={styles.steps}
      aria-label="Go to the beginning of a step"
      value=""
      onChange={(event) => onGoTo(Number(event.target.value))}
    >
      <option value="">Go to a step</option>
      {sources.map((source) => (
        <option key={`${source.attempt} ${source.stream}`} value={source.firstLine}>
          {nameOf(source)}
        </option>
      ))}
    </select>
  );
}

function placeOf(chosen: number | null, matches: GrowingNumbers): string {
  const total = counted(matches.length, "line");
  if (chosen === null || matches.length === 0) return total;
  const before = matches.firstAbove(chosen - 1);
  return matches.at(before) === chosen ? `${count(before + 1)} of ${total}` : total;
}

const STATES: Readonly<Record<FeedState, string>> = {
  loading: "· loading more",
  live: "· live",
  lost: "· ⚠ connection lost, trying again",
  ended: "",
};
