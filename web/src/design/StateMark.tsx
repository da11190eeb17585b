import { lookOf, type Tone } from "~/text/states";
import styles from "./StateMark.module.css";
import tones from "./Tone.module.css";

/** A job's state: a mark and a word in the state's colour. */
export function StateMark({ shown, short = false }: { readonly shown: string; readonly short?: boolean }) {
  const look = lookOf(shown);
  return (
    <span className={`${styles.state} ${tones[look.tone]}`}>
      <span aria-hidden>{look.mark}</span>
      <span className={short ? "visually-hidden" : undefined}>{look.word}</span>
    </span>
  );
}

/** A word on a soft ground, such as a severity or a health. */
export function Badge({ tone, children }: { readonly tone: Tone; readonly children: React.ReactNode }) {
  return <span className={`${styles.badge} ${tones[tone]}`}>{children}</span>;
}
