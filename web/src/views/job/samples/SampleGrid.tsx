/** Sample pictures by prompt: of one run at one step, or of several steps or runs side by side. */

import styles from "./SampleGrid.module.css";
import { allPrompts, type Prompt, type Sample, type SampleSet, type Step, stepText, thumbnailAddress } from "./samples";

export interface SampleColumn {
  /** What tells the pictures of this column from the others: a step or the name of a run. */
  readonly title: string;
  readonly samples: SampleSet;
  readonly step: Step;
}

interface Props {
  readonly columns: readonly SampleColumn[];
  /** Whether a column is named even if it is the only one. */
  readonly named?: boolean;
  /** Opens a picture large; without it pictures are only shown. */
  readonly onOpen?: (prompt: Prompt) => void;
}

export function SampleGrid({ columns, named = columns.length > 1, onOpen }: Props) {
  return (
    <ul className={styles.grid}>
      {allPrompts(columns.map((column) => column.samples)).map((prompt) => (
        <li key={prompt.key} className={styles.prompt}>
          <div className={styles.pictures}>
            {columns.map((column) => {
              const sample = column.samples.at(column.step, prompt.key);
              return (
                <figure key={column.title} className={styles.figure}>
                  <Picture sample={sample} prompt={prompt} step={column.step} onOpen={onOpen} />
                  {named ? <figcaption className="quiet">{column.title}</figcaption> : null}
                </figure>
              );
            })}
          </div>
          <p className={styles.text} title={prompt.text}>
            {prompt.text}
          </p>
        </li>
      ))}
    </ul>
  );
}

interface PictureProps extends Pick<Props, "onOpen"> {
  readonly sample: Sample | null;
  readonly prompt: Prompt;
  readonly step: Step;
}

function Picture({ sample, prompt, step, onOpen }: PictureProps) {
  if (sample === null) return <div className={styles.none}>no picture at {stepText(step)}</div>;
  const picture = <img className={styles.picture} src={thumbnailAddress(sample, 512)} alt={describe(prompt, step)} />;
  if (!onOpen) return picture;
  return (
    <button type="button" className={styles.open} onClick={() => onOpen(prompt)}>
      {picture}
    </button>
  );
}

function describe(prompt: Prompt, step: Step): string {
  return `${prompt.text}, ${stepText(step)}`;
}
