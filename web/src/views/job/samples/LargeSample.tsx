import { type KeyboardEvent, useState } from "react";
import { Button } from "~/design/Button";
import { Dialog } from "~/design/Dialog";
import styles from "./LargeSample.module.css";
import { downloadAddress, type Prompt, type SampleSet, type Step, stepText, thumbnailAddress } from "./samples";

interface Props {
  readonly samples: SampleSet;
  readonly prompt: Prompt;
  readonly step: Step;
  readonly onStep: (step: Step) => void;
  readonly onPrompt: (prompt: Prompt) => void;
  readonly onClose: () => void;
}

/** One sample large. The arrow keys lead to earlier and later steps, and to the prompts before and behind. */
export function LargeSample({ samples, prompt, step, onStep, onPrompt, onClose }: Props) {
  const [isCompared, setCompared] = useState(false);
  const at = samples.steps.indexOf(step);
  const [earlier, later] = [samples.steps[at - 1], samples.steps[at + 1]];
  const first = samples.steps[0] ?? null;

  function onKeyDown(event: KeyboardEvent): void {
    const number = samples.prompts.findIndex((one) => one.key === prompt.key);
    const [before, behind] = [samples.prompts[number - 1], samples.prompts[number + 1]];
    if (event.key === "ArrowLeft" && earlier !== undefined) onStep(earlier);
    else if (event.key === "ArrowRight" && later !== undefined) onStep(later);
    else if (event.key === "ArrowUp" && before) onPrompt(before);
    else if (event.key === "ArrowDown" && behind) onPrompt(behind);
    else return;
    event.preventDefault();
  }

  const shown = isCompared && first !== step ? [first, step] : [step];
  const sample = samples.at(step, prompt.key);
  return (
    <Dialog open onClose={onClose} title={stepText(step)} wide>
      {/* Keys pressed on any button inside arrive here as well. */}
      <div role="none" onKeyDown={onKeyDown} className={styles.large}>
        <div className={styles.pictures}>
          {shown.map((one) => (
            <LargePicture key={one} samples={samples} prompt={prompt} step={one} isNamed={shown.length > 1} />
          ))}
        </div>
        <p className={styles.prompt}>{prompt.text}</p>
        <div className={styles.buttons}>
          <Button disabled={earlier === undefined} onClick={() => earlier !== undefined && onStep(earlier)}>
            ◂ {earlier === undefined ? "Earlier" : stepText(earlier)}
          </Button>
          <Button disabled={later === undefined} onClick={() => later !== undefined && onStep(later)}>
            {later === undefined ? "Later" : stepText(later)} ▸
          </Button>
          <Button aria-pressed={isCompared} onClick={() => setCompared(!isCompared)}>
            Beside {stepText(first)}
          </Button>
          {sample ? (
            <a href={downloadAddress(sample)} download>
              Download
            </a>
          ) : null}
          <Button className={styles.close} onClick={onClose}>
            Close
          </Button>
        </div>
      </div>
    </Dialog>
  );
}

interface PictureProps {
  readonly samples: SampleSet;
  readonly prompt: Prompt;
  readonly step: Step;
  readonly isNamed: boolean;
}

function LargePicture({ samples, prompt, step, isNamed }: PictureProps) {
  const sample = samples.at(step, prompt.key);
  return (
    <figure className={styles.figure}>
      {sample ? (
        <img src={thumbnailAddress(sample, 1024)} alt={`${prompt.text}, ${stepText(step)}`} />
      ) : (
        <div className={styles.none}>no picture of this prompt at {stepText(step)}</div>
      )}
      {isNamed ? <figcaption className="quiet">{stepText(step)}</figcaption> : null}
    </figure>
  );
}
