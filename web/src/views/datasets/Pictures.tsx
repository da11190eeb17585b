import { useState } from "react";
import type { DatasetProblem } from "~/api/documents";
import { Button } from "~/design/Button";
import { counted } from "~/text/format";
import { Caption } from "./Caption";
import styles from "./Pictures.module.css";

export interface Picture {
  readonly path: string;
  readonly source: string;
  /** null: there is none; undefined: not known yet. */
  readonly caption: string | null | undefined;
}

interface Props {
  readonly pictures: readonly Picture[];
  /** How many there are in all, if more can be fetched. */
  readonly total?: number;
  readonly onMore?: () => void;
  readonly problems: readonly DatasetProblem[];
  readonly trigger: string;
  /** Whether the recipe uses captions, so that a missing one is said. */
  readonly usesCaptions: boolean;
}

const AT_FIRST = 48;

/** The pictures with their captions, and what is wrong with them beside them. */
export function Pictures({ pictures, total, onMore, problems, trigger, usesCaptions }: Props) {
  const [most, setMost] = useState(AT_FIRST);
  const byPath = grouped(problems);
  // What is wrong comes first: one bad picture among three hundred is easily missed.
  const sorted = [...pictures].sort(
    (one, other) => Number(byPath.has(stemOf(other.path))) - Number(byPath.has(stemOf(one.path))),
  );
  const left = (total ?? pictures.length) - Math.min(most, pictures.length);
  return (
    <div className={styles.all}>
      <ul className={styles.grid} aria-label="Pictures">
        {sorted.slice(0, most).map((picture) => {
          const wrong = byPath.get(stemOf(picture.path)) ?? [];
          return (
            <li key={picture.path} className={styles.picture}>
              <img src={picture.source} alt={picture.path} title={picture.path} loading="lazy" decoding="async" />
              <Caption text={picture.caption} trigger={trigger} isExpected={usesCaptions} />
              {wrong.map((problem) => (
                <p
                  key={problem.code + problem.path}
                  className={problem.severity === "error" ? styles.error : styles.warning}
                  title={problem.fix}
                >
                  {problem.severity === "error" ? "✕" : "▲"} {problem.message}
                </p>
              ))}
            </li>
          );
        })}
      </ul>
      {left > 0 ? (
        <Button
          onClick={() => {
            setMost(most + 4 * AT_FIRST);
            onMore?.();
          }}
        >
          Show {counted(Math.min(left, 4 * AT_FIRST), "more", "more")}
        </Button>
      ) : null}
    </div>
  );
}

function grouped(problems: readonly DatasetProblem[]): ReadonlyMap<string, readonly DatasetProblem[]> {
  const found = new Map<string, DatasetProblem[]>();
  for (const problem of problems) {
    const stem = stemOf(problem.path);
    found.set(stem, [...(found.get(stem) ?? []), problem]);
  }
  return found;
}

/** What a picture and its caption have in common. */
export function stemOf(path: string): string {
  return path.replace(/\.[^./]+$/, "");
}

export function isPicture(path: string): boolean {
  return /\.(png|jpe?g|webp)$/i.test(path);
}

export function isCaption(path: string): boolean {
  return /\.(txt|caption)$/i.test(path);
}
