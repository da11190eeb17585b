import { type DragEvent, useRef, useState } from "react";
import { Button } from "~/design/Button";
import styles from "./DropZone.module.css";
import { type Dropped, readChosen, readDrop } from "./upload/dropped";

interface Props {
  readonly onDropped: (dropped: Dropped) => void;
  readonly title: string;
  readonly busy?: boolean;
  readonly children?: React.ReactNode;
}

/** Takes a folder or files: dropped, or chosen in a dialog. */
export function DropZone({ onDropped, title, busy, children }: Props) {
  const [isOver, setOver] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const folder = useRef<HTMLInputElement>(null);
  const files = useRef<HTMLInputElement>(null);

  function take(dropped: Dropped): void {
    setProblem(dropped.files.length === 0 ? "There is no file in it that could be trained on." : null);
    if (dropped.files.length > 0) onDropped(dropped);
  }

  async function drop(event: DragEvent): Promise<void> {
    event.preventDefault();
    setOver(false);
    try {
      take(await readDrop(event.dataTransfer));
    } catch (error) {
      setProblem(`It cannot be read: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the buttons inside do the same by keyboard
    <div
      className={isOver ? styles.over : styles.zone}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => void drop(event)}
    >
      <p className={styles.title}>{title}</p>
      <div className={styles.buttons}>
        <Button busy={busy} onClick={() => folder.current?.click()}>
          Choose a folder
        </Button>
        <Button busy={busy} onClick={() => files.current?.click()}>
          Choose files
        </Button>
      </div>
      {children}
      {problem ? (
        <p role="alert" className={styles.problem}>
          ✕ {problem}
        </p>
      ) : null}
      <input
        ref={folder}
        type="file"
        hidden
        aria-label="Folder of the dataset"
        {...{ webkitdirectory: "" }}
        onChange={(event) => event.target.files && take(readChosen(event.target.files))}
      />
      <input
        ref={files}
        type="file"
        hidden
        multiple
        aria-label="Files of the dataset"
        onChange={(event) => event.target.files && take(readChosen(event.target.files))}
      />
    </div>
  );
}
