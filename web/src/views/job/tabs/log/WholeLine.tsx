import { Button } from "~/design/Button";
import { Dialog } from "~/design/Dialog";
import { count } from "~/text/format";
import styles from "./Log.module.css";
import { plainText } from "./logText";

const BLOCK = 20_000;

/** A line that is too long for the list, whole: in blocks, of which the browser lays out only those in sight. */
export function WholeLine({
  number,
  text,
  onClose,
}: {
  readonly number: number;
  readonly text: string;
  readonly onClose: () => void;
}) {
  const plain = plainText(text);
  const blocks = Array.from({ length: Math.ceil(plain.length / BLOCK) }, (_, at) =>
    plain.slice(at * BLOCK, (at + 1) * BLOCK),
  );
  return (
    <Dialog open onClose={onClose} title={`Line ${count(number)}: ${count(text.length)} characters`} wide>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section className={styles.whole} aria-label="The whole line" tabIndex={0}>
        {blocks.map((block, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: blocks of a text that does not change
          <pre key={at} className={styles.block}>
            {block}
          </pre>
        ))}
      </section>
      <div>
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  );
}
