/** The page's tokens as a canvas needs them. They are read anew when the theme changes. */
export interface Colours {
  readonly text: string;
  readonly quiet: string;
  readonly line: string;
  readonly surface: string;
  readonly accent: string;
  readonly attention: string;
  readonly attentionSoft: string;
  readonly bad: string;
  readonly badSoft: string;
  readonly waitingSoft: string;
  readonly series: readonly string[];
  readonly font: string;
}

export function readColours(): Colours {
  const style = getComputedStyle(document.documentElement);
  const token = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    text: token("text"),
    quiet: token("text-quiet"),
    line: token("line"),
    surface: token("surface"),
    accent: token("accent"),
    attention: token("attention"),
    attentionSoft: token("attention-soft"),
    bad: token("bad"),
    badSoft: token("bad-soft"),
    waitingSoft: token("waiting-soft"),
    series: [1, 2, 3, 4, 5, 6, 7, 8].map((number) => token(`series-${number}`)),
    font: `${token("size-small")} ${token("font")}`,
  };
}

/** The colour of the series with this number, from 1; after the eighth they begin again. */
export function seriesColour(colours: Colours, number: number): string {
  return colours.series[(number - 1) % colours.series.length] ?? colours.text;
}

/** The same for CSS. */
export function seriesToken(number: number): string {
  return `var(--series-${((number - 1) % 8) + 1})`;
}
