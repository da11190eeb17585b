import type { RecipeProblem } from "~/api/documents";
import styles from "./ProblemList.module.css";

interface Props {
  readonly problems: readonly RecipeProblem[];
  /** Problems of several recipes say whose they are. */
  readonly withFiles?: boolean;
  /** Leads to a line of the text. */
  readonly onLine?: (line: number) => void;
}

/** What is wrong with a recipe: the line, the field, the problem, and how to correct it. */
export function ProblemList({ problems, withFiles = false, onLine }: Props) {
  return (
    <ul className={styles.list}>
      {problems.map((problem) => (
        <li key={`${problem.file} ${problem.line} ${problem.field} ${problem.message}`} className={styles.problem}>
          <span className={styles.place}>
            <Line line={problem.line ?? null} onLine={onLine} />
            {problem.field ? <code>{problem.field}</code> : null}
          </span>
          <span className={styles.words}>
            {problem.message}
            {problem.fix ? <span className={styles.fix}>→ {problem.fix}</span> : null}
            {withFiles ? <span className="quiet mono">{problem.file}</span> : null}
          </span>
        </li>
      ))}
    </ul>
  );
}

function Line({ line, onLine }: { readonly line: number | null; readonly onLine: Props["onLine"] }) {
  if (line === null) return null;
  if (!onLine) return <span>Line {line}</span>;
  return (
    <button type="button" className={styles.line} onClick={() => onLine(line)}>
      Line {line}
    </button>
  );
}
