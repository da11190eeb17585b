/** Prices and limits in words, the same beside the form and in the question before money is spent. */
import type { Terms } from "~/api/documents";
import { dollars, duration } from "~/text/format";
import type { Forecast } from "./forecast";

/** `Train for about $0.80 (at most $1.60)`; a limit that ends it early comes first. */
export function trainWords(forecast: Forecast): string {
  const { cost, limits } = forecast;
  if (cost === null || cost === undefined) return "Train";
  if (cost.high === 0 && limits.max_spend_usd === 0) return "Train for free";
  const most = dollars(limits.max_spend_usd);
  if (limits.max_spend_usd < cost.expected)
    return `Train until ${most} is spent (about ${dollars(cost.expected)} needed)`;
  return `Train for about ${dollars(cost.expected)} (at most ${most})`;
}

export function rangeOf(low: string, high: string): string {
  return low === high ? low : `${low} to ${high}`;
}

/** `40 min to 1 h 30 min`, `2.6 to 5.4 h`: an estimate of hours has no minutes. */
export function hoursWords({ low, high }: { readonly low: number; readonly high: number }): string {
  if (low >= 1) return `${rangeOf(low.toFixed(1), high.toFixed(1))} h`;
  return rangeOf(duration(low * 3600), duration(high * 3600));
}

/** What ends the training whatever happens, and what then becomes of it. */
export function limitWords(limits: Terms["limits"]): string {
  const time = duration(limits.max_seconds);
  const when = limits.max_spend_usd > 0 ? `after ${time} or at ${dollars(limits.max_spend_usd)}` : `after ${time}`;
  return `Stopped ${when}. The best checkpoint is then saved and downloaded, and the machine is destroyed.`;
}
