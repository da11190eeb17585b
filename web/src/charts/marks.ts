/** Marks, shaded stretches and zones of a chart, drawn on uPlot's canvas. */
import type uPlot from "uplot";
import type { Colours } from "~/charts/colours";

export type MarkKind = "checkpoint" | "sample" | "event" | "problem";

/** Something that happened at a place of the axis. */
export interface Mark {
  readonly x: number;
  readonly kind: MarkKind;
  readonly label: string;
}

/** A stretch of the axis, such as a stall. */
export interface Stretch {
  readonly from: number;
  readonly to: number;
  readonly label: string;
}

/** Values from `from` on: a warning or something critical. */
export interface Zone {
  readonly from: number;
  readonly kind: "warning" | "critical";
  readonly label: string;
}

export const MARK_SIGNS: Record<MarkKind, string> = { checkpoint: "◆", sample: "▣", event: "▾", problem: "✕" };

export interface Drawn {
  readonly marks: readonly Mark[];
  readonly stretches: readonly Stretch[];
  readonly zones: readonly Zone[];
}

/** What lies under the lines. */
export function drawGround(plot: uPlot, { stretches, zones }: Drawn, colours: Colours): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const { from, to } of stretches) {
    const left = plot.valToPos(from, "x", true);
    const width = Math.max(plot.valToPos(to, "x", true) - left, 2 * devicePixelRatio);
    ctx.fillStyle = colours.attentionSoft;
    ctx.fillRect(left, bbox.top, width, bbox.height);
  }
  const rising = [...zones].sort((a, b) => a.from - b.from);
  rising.forEach(({ from, kind }, place) => {
    const bottom = plot.valToPos(from, "y", true);
    const above = rising[place + 1];
    const top = above === undefined ? bbox.top : plot.valToPos(above.from, "y", true);
    ctx.fillStyle = kind === "critical" ? colours.badSoft : colours.attentionSoft;
    ctx.fillRect(bbox.left, top, bbox.width, bottom - top);
  });
  ctx.restore();
}

/** What lies over the lines: a sign at the top edge, with a line down from it where something happened to the training. */
export function drawMarks(plot: uPlot, { marks }: Drawn, colours: Colours): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.font = `${11 * ratio}px sans-serif`;
  ctx.textAlign = "center";
  ctx.textBaseline = "top";
  let free = Number.NEGATIVE_INFINITY;
  for (const { x, kind } of marks) {
    const at = plot.valToPos(x, "x", true);
    if (at < bbox.left || at > bbox.left + bbox.width) continue;
    const colour = kind === "problem" ? colours.bad : kind === "event" ? colours.attention : colours.quiet;
    if (kind === "problem" || kind === "event") {
      ctx.strokeStyle = colour;
      ctx.lineWidth = ratio;
      ctx.setLineDash([2 * ratio, 3 * ratio]);
      ctx.beginPath();
      ctx.moveTo(at, bbox.top + 2 * ratio);
      ctx.lineTo(at, bbox.top + bbox.height);
      ctx.stroke();
    }
    if (at < free && kind !== "problem") continue; // signs over each other cannot be read
    ctx.fillStyle = colour;
    ctx.fillText(MARK_SIGNS[kind], at, bbox.top - 11 * ratio);
    free = at + 12 * ratio;
  }
  ctx.restore();
}
