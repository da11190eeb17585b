import { Slider } from "radix-ui";
import styles from "./StepSlider.module.css";
import { type Step, stepText } from "./samples";

interface Props {
  readonly steps: readonly Step[];
  readonly step: Step;
  readonly onChange: (step: Step) => void;
}

/** Chooses one of the steps at which samples exist; the arrow keys go from one to the next. */
export function StepSlider({ steps, step, onChange }: Props) {
  const chosen = Math.max(0, steps.indexOf(step));
  return (
    <div className={styles.row}>
      <Slider.Root
        className={styles.slider}
        min={0}
        max={Math.max(1, steps.length - 1)}
        value={[chosen]}
        disabled={steps.length < 2}
        onValueChange={([at]) => onChange(steps[at ?? 0] ?? null)}
      >
        <Slider.Track className={styles.track}>
          <Slider.Range className={styles.range} />
        </Slider.Track>
        <Slider.Thumb
          className={styles.thumb}
          aria-label="Training step of the samples"
          aria-valuetext={stepText(step)}
        />
      </Slider.Root>
      <output className={styles.step}>{stepText(step)}</output>
    </div>
  );
}
