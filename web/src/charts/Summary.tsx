import { memo, useDeferredValue, useMemo } from "react";
import type { Mark, Stretch } from "~/charts/marks";
import type { ChartSeries } from "~/charts/series";
import { summaryOf } from "~/charts/summary";
import { counted } from "~/text/format";

interface Props {
  readonly id: string;
  readonly series: readonly ChartSeries[];
  readonly format: (value: number) => string;
  readonly marks: readonly Mark[];
  readonly stretches: readonly Stretch[];
}

/** A chart in words, only for screen readers. It may come a moment after the lines, which must not wait for it. */
export const Summary = memo(function Summary({ id, series, format, marks, stretches }: Props) {
  const later = useDeferredValue(series, NOTHING);
  const summary = useMemo(() => (later === NOTHING ? "" : summaryOf(later, format)), [later, format]);
  return (
    <p id={id} className="visually-hidden">
      {summary}
      {markWords(marks, stretches)}
    </p>
  );
});

const NOTHING: readonly ChartSeries[] = [];

function markWords(marks: readonly Mark[], stretches: readonly Stretch[]): string {
  const said = [...marks.filter(({ kind }) => kind === "problem").map(({ label }) => label)];
  const checkpoints = marks.filter(({ kind }) => kind === "checkpoint").length;
  if (checkpoints > 0) said.push(counted(checkpoints, "checkpoint"));
  if (stretches.length > 0) said.push(counted(stretches.length, "marked stretch", "marked stretches"));
  return said.length > 0 ? ` ${said.join(", ")}.` : "";
}
