import { useId } from "react";
import { SPANS } from "~/charts/smoothing";
import { count } from "~/text/format";
import styles from "./Compare.module.css";

interface Props {
  readonly byTime: boolean;
  readonly onByTime: (byTime: boolean) => void;
  readonly span: number;
  readonly usual: number;
  readonly onSpan: (span: number) => void;
  readonly isLog: boolean;
  readonly onLog: (isLog: boolean) => void;
}

/** What all charts of the comparison share. */
export function ChartControls({ byTime, onByTime, span, usual, onSpan, isLog, onLog }: Props) {
  const id = useId();
  return (
    <div className={styles.controls}>
      <label htmlFor={`${id}-axis`}>Over</label>
      <select
        id={`${id}-axis`}
        value={byTime ? "time" : "step"}
        onChange={(event) => onByTime(event.target.value === "time")}
      >
        <option value="step">steps</option>
        <option value="time">time since the start</option>
      </select>
      <label htmlFor={`${id}-span`}>Smoothing</label>
      <select id={`${id}-span`} value={span} onChange={(event) => onSpan(Number(event.target.value))}>
        {SPANS.map((one) => (
          <option key={one} value={one}>
            {one === 0 ? "none" : `${count(one)} points`}
            {one === usual ? " (usual)" : ""}
          </option>
        ))}
      </select>
      <label className={styles.check}>
        <input type="checkbox" checked={isLog} onChange={(event) => onLog(event.target.checked)} />
        Log scale
      </label>
    </div>
  );
}
