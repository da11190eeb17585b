/**
 * The document's title: what the page shows, before the name. A running training puts its percentage in front, and the
 * page's icon shows it as a ring: a tab in the background says how far it is.
 */
import { useEffect } from "react";

let shown = "";
let progress = "";

function write(): void {
  document.title = [progress, shown, "Stationmaster"].filter(Boolean).join(" · ");
}

export function useTitle(title: string): void {
  useEffect(() => {
    shown = title;
    write();
  }, [title]);
}

/** `62 %` or `3 running`; empty for none. */
export function setProgressInTitle(text: string): void {
  if (text === progress) return;
  progress = text;
  write();
}

const PLAIN_ICON = "/favicon.svg";
const ROUND = 2 * Math.PI * 13;

/** A ring that is closed as far as the training is; null: the plain icon. */
export function setProgressInIcon(percent: number | null): void {
  const icon = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
  const address = percent === null ? PLAIN_ICON : ringOf(percent);
  if (icon !== null && icon.getAttribute("href") !== address) icon.setAttribute("href", address);
}

/** Colours are those of the page now; a ring is drawn again with the next percent. */
export function ringOf(percent: number): string {
  const tokens = getComputedStyle(document.documentElement);
  const colour = (name: string) => tokens.getPropertyValue(name).trim();
  const done = (Math.min(100, Math.max(0, percent)) / 100) * ROUND;
  const circle = (stroke: string, dash: string) =>
    `<circle cx="16" cy="16" r="13" fill="none" stroke="${stroke}" stroke-width="6"${dash}/>`;
  const svg = [
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><g transform="rotate(-90 16 16)">',
    circle(colour("--line"), ""),
    circle(colour("--accent"), ` stroke-dasharray="${done.toFixed(1)} ${ROUND.toFixed(1)}"`),
    "</g></svg>",
  ].join("");
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}
