import { useConnection } from "~/api/connection";
import { useNow } from "~/design/When";
import { clock } from "~/text/format";
import styles from "./ConnectionMark.module.css";

/** `● live`, or since when the page has heard nothing. */
export function ConnectionMark() {
  const { state, lastAnswer } = useConnection();
  useNow();
  if (state === "lost") {
    return (
      <span className={styles.lost}>▲ {lastAnswer === null ? "no answer" : `last update ${clock(lastAnswer)}`}</span>
    );
  }
  return state === "live" ? <span className={styles.live}>● live</span> : <span className="quiet">○ connecting</span>;
}

export function LostBanner() {
  const { state, lastAnswer } = useConnection();
  if (state !== "lost") return null;
  return (
    <div className={styles.banner} role="status">
      ▲ Connection lost
      {lastAnswer === null ? "" : `, data from ${clock(lastAnswer)}`}. Trainings go on without this page; it tries again
      by itself.
    </div>
  );
}
