import { useRef, useState } from "react";
import { Button } from "~/design/Button";
import { Dialog } from "~/design/Dialog";
import styles from "./ShownOnce.module.css";

interface Props {
  readonly title: string;
  /** What it is, and what to do with it. */
  readonly children: React.ReactNode;
  readonly secret: string;
  readonly onClose: () => void;
}

/** A secret that the server tells once: to be copied now. */
export function ShownOnce({ title, children, secret, onClose }: Props) {
  return (
    <Dialog open onClose={onClose} title={title}>
      {children}
      <CopyText text={secret} />
      <p className="quiet">▲ Copy it now: it cannot be shown again after you close this.</p>
      <div className={styles.buttons}>
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  );
}

/** A text with a button that copies it. */
export function CopyText({ text, label = "Copy" }: { readonly text: string; readonly label?: string }) {
  const shown = useRef<HTMLElement>(null);
  const [result, setResult] = useState<"" | "copied" | "marked">("");

  async function copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
      setResult("copied");
    } catch {
      // Browsers keep the clipboard from pages without TLS: marked, the text can be copied by keys.
      if (shown.current) window.getSelection()?.selectAllChildren(shown.current);
      setResult("marked");
    }
  }

  return (
    <div className={styles.copy}>
      <code ref={shown} className={styles.text}>
        {text}
      </code>
      <Button onClick={() => void copy()}>{label}</Button>
      <span role="status">
        {result === "copied" ? "✓ Copied" : result === "marked" ? "Selected: copy it with ⌘C or Ctrl+C" : ""}
      </span>
    </div>
  );
}
