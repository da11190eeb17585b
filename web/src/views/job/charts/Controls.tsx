import { useId } from "react";
import { placeText } from "~/charts/series";
import { SPANS } from "~/charts/smoothing";
import { Button } from "~/design/Button";
import { counted } from "~/text/format";
import { type JobAxis, type Picture, type PictureChange, rangeChange } from "../search";
import styles from "./JobCharts.module.css";

interface Props {
  readonly picture: Picture;
  /** That is in use, chosen or not. */
  readonly span: number;
  readonly onChange: (change: PictureChange) => void;
}

/** How all charts are drawn. The address keeps it. */
export function Controls({ picture, span, onChange }: Props) {
  const id = useId();
  const { axis, log, range } = picture;
  return (
    <div className={styles.controls}>
      <label htmlFor={`${id}-smooth`}>Smoothing</label>
      <select
        id={`${id}-smooth`}
        value={picture.span ?? "usual"}
        onChange={({ target }) => onChange({ smooth: target.value === "usual" ? null : Number(target.value) })}
      >
        <option value="usual">usual ({span > 1 ? counted(span, "step") : "none"})</option>
        {SPANS.map((one) => (
          <option key={one} value={one}>
            {one === 0 ? "none" : counted(one, "step")}
          </option>
        ))}
      </select>
      <label htmlFor={`${id}-axis`}>Over</label>
      <select
        id={`${id}-axis`}
        value={axis}
        onChange={({ target }) =>
          // The same numbers would mean something else on the other axis.
          onChange({ axis: (target.value === "time" ? "time" : null) as JobAxis | null, ...rangeChange(axis, null) })
        }
      >
        <option value="step">steps</option>
        <option value="time">time</option>
      </select>
      <label className={styles.check}>
        <input type="checkbox" checked={log} onChange={({ target }) => onChange({ log: target.checked ? 1 : null })} />
        Log scale
      </label>
      {range ? (
        <span className={styles.zoom}>
          {placeText(axis, range.from)} to {placeText(axis, range.to)}
          <Button onClick={() => onChange(rangeChange(axis, null))}>Show all</Button>
        </span>
      ) : (
        <span className={styles.hint}>drag over a chart to zoom</span>
      )}
    </div>
  );
}
