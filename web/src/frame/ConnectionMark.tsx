import { useConnection } from "~/api/connection";
import { useNow } from "~/design/When";
import { clock } from "~/text/format";
import styles from "./ConnectionMark.module.css";

/** `● live`, or since when the page has heard nothing. */
export function ConnectionMark() {
  const { state, lastAnswer } = useConnection();
  useNow();
  if (state === "lost") {
    return <Mark sign="▲" word={lastAnswer === null ? "no answer" : `last update ${clock(lastAnswer)}`} look="lost" />;
  }
  return state === "live" ? (
    <Mark sign="●" word="live" look="live" />
  ) : (
    <Mark sign="○" word="connecting" look="connecting" />
  );
}

function Mark({ sign, word, look }: { readonly sign: string; readonly word: string; readonly look: string }) {
  return (
    <span className={`${styles.mark} ${styles[look]}`} title={word}>
      {sign}
      <span className={styles.word}> {word}</span>
    </span>
  );
}

export function LostBanner() {
  const { state, lastAnswer } = useConnection();
  if (state !== "lost") return null;
  return (
    <div className={styles.banner} role="status">
      ▲ Connection lost
      {lastAnswer === null ? "" : `, data from ${clock(lastAnswer)}`}. Trainings continue without this page. It keeps
      trying to reconnect.
    </div>
  );
}
