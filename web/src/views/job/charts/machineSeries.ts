/** What the machine measured, in percent of what it has: so GPU memory, RAM and use fit into one picture. */
import type { Series } from "~/api/documents";
import type { ChartSeries } from "~/charts/series";
import { memoryOf, percent } from "~/text/format";

export const MEMORY_ZONES = [
  { from: 85, kind: "warning", label: "above 85 %" },
  { from: 95, kind: "critical", label: "above 95 %" },
] as const;

interface Machine {
  readonly memory: readonly ChartSeries[];
  readonly use: readonly ChartSeries[];
}

/** `gpuGib`: the memory of one GPU, where the samples do not say it. */
export function machineSeries(drawn: readonly Series[], gpuGib: number | null): Machine {
  const named = new Map(drawn.map((series) => [series.name, series]));
  const gpus = [...new Set(drawn.flatMap(({ name }) => name.match(/^gpu(\d+)\./)?.[1] ?? []))];
  const memory: ChartSeries[] = [];
  const use: ChartSeries[] = [];
  gpus.forEach((gpu, place) => {
    const suffix = gpus.length > 1 ? ` ${gpu}` : "";
    const total = highest(named.get(`gpu${gpu}.memory_total_gb`)) ?? gpuGib;
    push(memory, ofTotal(`GPU memory${suffix}`, named.get(`gpu${gpu}.memory_used_gb`), total, place + 1));
    push(use, inPercent(`GPU${suffix}`, named.get(`gpu${gpu}.utilization_percent`), place + 1));
  });
  if (gpus.length === 0) {
    push(memory, ofTotal("GPU memory", named.get("gpu_memory_used_gb"), gpuGib, 1));
    push(use, inPercent("GPU", named.get("gpu_utilization_percent"), 1));
  }
  const ram = highest(named.get("total_memory_gb"));
  push(memory, ofTotal("RAM", named.get("used_memory_gb"), ram, gpus.length + 2));
  push(use, inPercent("CPU", named.get("cpu_utilization_percent"), gpus.length + 2));
  return { memory, use };
}

function ofTotal(label: string, series: Series | undefined, total: number | null, colour: number): ChartSeries | null {
  if (series === undefined || total === null || total <= 0) return null;
  const y = series.y.map((value) => (value === null ? null : (value / total) * 100));
  const format = (value: number) => memoryOf((value * total) / 100, total);
  return { key: series.name, label, x: series.x, y, colour, format, smooth: false, spans: true };
}

function inPercent(label: string, series: Series | undefined, colour: number): ChartSeries | null {
  return series === undefined
    ? null
    : { key: series.name, label, x: series.x, y: series.y, colour, format: percent, smooth: false, spans: true };
}

function highest(series: Series | undefined): number | null {
  const found = Math.max(...(series?.y ?? []).map((value) => value ?? 0));
  return Number.isFinite(found) && found > 0 ? found : null;
}

function push(list: ChartSeries[], series: ChartSeries | null): void {
  if (series !== null) list.push(series);
}
