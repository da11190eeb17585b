import { type RefObject, useEffect, useRef } from "react";

const ARRIVAL_MS = 3_000;
const HANDS = ["wheel", "pointerdown", "keydown"] as const;

/** An element that an address with `#name` leads to, though what is above it still arrives; hands on the page end that. */
export function useLinkedPlace(name: string): RefObject<HTMLDivElement | null> {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (window.location.hash !== `#${name}`) return;
    const growing = new ResizeObserver(() => place.current?.scrollIntoView());
    const stop = () => growing.disconnect();
    growing.observe(document.body);
    const timer = window.setTimeout(stop, ARRIVAL_MS);
    for (const hand of HANDS) window.addEventListener(hand, stop, { once: true });
    return () => {
      stop();
      window.clearTimeout(timer);
      for (const hand of HANDS) window.removeEventListener(hand, stop);
    };
  }, [name]);
  return place;
}
