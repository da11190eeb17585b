/** Credits as they are shown: dollars, or points of a dollar. */

export const MICROS = 1_000_000;

/** `$1.50`, or `15,000 points`; exact, since people count their credits. */
export function credits(micros: number, pointsPerDollar: number | null | undefined): string {
  const sign = micros < 0 ? "−" : "";
  const size = Math.abs(micros);
  if (pointsPerDollar) {
    const points = (size * pointsPerDollar) / MICROS;
    return `${sign}${points.toLocaleString("en-US", { maximumFractionDigits: 6 })} points`;
  }
  const text = (size / MICROS).toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 6 });
  return `${sign}$${text}`;
}

/** With its sign, for a change: `+$5.00`. */
export function change(micros: number, pointsPerDollar: number | null | undefined): string {
  return micros > 0 ? `+${credits(micros, pointsPerDollar)}` : credits(micros, pointsPerDollar);
}

/** The typed amount in micro-dollars; null if it is no amount. */
export function typedMicros(text: string, pointsPerDollar: number | null | undefined): number | null {
  const plain = text.trim().replaceAll(",", "").replace(/^\$/, "").replace("−", "-");
  if (!/^-?\d+(\.\d{1,6})?$/.test(plain)) return null;
  const micros = Math.round((Number(plain) * MICROS) / (pointsPerDollar ?? 1));
  return micros === 0 || !Number.isSafeInteger(micros) ? null : micros;
}
