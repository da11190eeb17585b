import { Button } from "~/design/Button";
import { useSay } from "~/design/Toasts";
import styles from "./CopyText.module.css";

/** A path, an id or a command that people take along, with a button that copies it. `what` names it. */
export function CopyText({ text, what }: { readonly text: string; readonly what: string }) {
  const say = useSay();
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => say(`Copied the ${what}`),
      () => say(`The browser does not allow copying: select the ${what} instead`),
    );
  return (
    <span className={styles.copy}>
      <code>{text}</code>
      <Button kind="quiet" className={styles.button} aria-label={`Copy the ${what}`} onClick={() => void copy()}>
        Copy
      </Button>
    </span>
  );
}
