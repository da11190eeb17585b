import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useRef, useState } from "react";

interface Props {
  readonly part: "li" | "tbody";
  readonly keys: readonly string[];
  /** What the keys moved to: it is brought into view, drawn or not. */
  readonly currentKey: string | null;
  readonly draw: (place: number) => ReactNode;
}

const HEIGHTS = { li: 72, tbody: 33 } as const;
const HEAD_HEIGHT = 120; // of what stays at the top of the window

/** A long list of which only what can be seen is drawn, with room above and below for the rest. */
export default function VirtualEntries({ part: Part, keys, currentKey, draw }: Props) {
  const top = useRef<HTMLElement>(null);
  const [margin, setMargin] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is above may change whenever the list does
  useEffect(() => {
    if (top.current) setMargin(top.current.getBoundingClientRect().top + window.scrollY);
  }, [keys.length]);
  const list = useWindowVirtualizer({
    count: keys.length,
    estimateSize: () => HEIGHTS[Part],
    getItemKey: (place) => keys[place] ?? place,
    overscan: 12,
    scrollMargin: margin,
    scrollPaddingStart: HEAD_HEIGHT,
  });
  const current = currentKey === null ? -1 : keys.indexOf(currentKey);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a move of the keys scrolls, not every new list
  useEffect(() => {
    if (current >= 0) list.scrollToIndex(current, { align: "auto" });
  }, [currentKey]);
  const shown = list.getVirtualItems();
  const above = (shown[0]?.start ?? margin) - margin;
  const below = list.getTotalSize() - ((shown[shown.length - 1]?.end ?? margin) - margin);
  return (
    <>
      <Room part={Part} height={above} place={(element) => (top.current = element)} />
      {shown.map((item) => (
        <Part key={item.key} data-index={item.index} ref={list.measureElement}>
          {draw(item.index)}
        </Part>
      ))}
      <Room part={Part} height={below} />
    </>
  );
}

interface RoomProps {
  readonly part: "li" | "tbody";
  readonly height: number;
  readonly place?: (element: HTMLElement | null) => void;
}

function Room({ part, height, place }: RoomProps) {
  if (part === "li") return <li ref={place} aria-hidden style={{ height, padding: 0, border: 0 }} />;
  return (
    <tbody ref={place} aria-hidden>
      <tr style={{ height }}>
        <td style={{ padding: 0, border: 0 }} />
      </tr>
    </tbody>
  );
}
