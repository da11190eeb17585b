import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type DragEvent, useEffect, useRef, useState } from "react";
import { answer, api } from "~/api/client";
import type { RecipeProblem } from "~/api/documents";
import { Field } from "~/design/Field";
import { ProblemNote } from "~/design/ProblemNote";
import { counted } from "~/text/format";
import { ProblemList } from "./ProblemList";
import styles from "./RecipeCheck.module.css";

const PAUSE_MS = 400;
const LONGEST = 200_000;

/** A recipe that is being written, and what is wrong with it, checked whenever the writer pauses. */
export function RecipeCheck() {
  const [text, setText] = useState("");
  const [fault, setFault] = useState<string | null>(null);
  const area = useRef<HTMLTextAreaElement>(null);
  const settled = useSettled(text, PAUSE_MS);
  const { data, error, isFetching } = useQuery({
    queryKey: ["recipes", "lint", settled],
    queryFn: () => answer(api.POST("/api/recipes/lint", { body: { text: settled } })),
    enabled: settled.trim() !== "" && settled.length <= LONGEST,
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 60_000,
    retry: false,
  });

  async function take(files: FileList | null): Promise<void> {
    const file = files?.[0];
    if (!file) return;
    if (file.size > LONGEST * 4) {
      setFault(`${file.name} is too long for a recipe`);
      return;
    }
    setFault(null);
    setText(await file.text());
  }

  function drop(event: DragEvent): void {
    event.preventDefault();
    void take(event.dataTransfer.files);
  }

  function showLine(line: number): void {
    const lines = text.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
    area.current?.focus();
    area.current?.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
    area.current?.scrollTo({ top: (line - 4) * 20 });
  }

  const tooLong = text.length > LONGEST ? `a recipe has at most ${LONGEST.toLocaleString("en-US")} characters` : null;
  return (
    <div className={styles.check}>
      <div role="none" onDragOver={(event) => event.preventDefault()} onDrop={drop}>
        <Field
          label="recipe.yaml"
          help="Paste it, drop the file here, or choose it below. Nothing is stored; files that it names are not checked."
          problem={fault ?? tooLong}
        >
          {(control) => (
            <textarea
              {...control}
              ref={area}
              className={styles.text}
              value={text}
              spellCheck={false}
              wrap="off"
              placeholder={"name: portrait\nversion: 1\ntitle: Portraits\n…"}
              onChange={(event) => {
                setFault(null);
                setText(event.target.value);
              }}
            />
          )}
        </Field>
        <Field label="From a file">
          {(control) => (
            <input
              {...control}
              type="file"
              accept=".yaml,.yml,.json"
              onChange={(event) => void take(event.target.files)}
            />
          )}
        </Field>
      </div>
      <section aria-labelledby="check-result" className={styles.result}>
        <h2 id="check-result">What is wrong with it</h2>
        {error ? <ProblemNote problem={error} /> : null}
        <Result
          text={text}
          problems={settled.trim() && !tooLong ? (data?.problems ?? null) : null}
          isOld={isFetching || settled !== text}
          onLine={showLine}
        />
      </section>
    </div>
  );
}

interface ResultProps {
  readonly text: string;
  readonly problems: readonly RecipeProblem[] | null;
  readonly isOld: boolean;
  readonly onLine: (line: number) => void;
}

function Result({ text, problems, isOld, onLine }: ResultProps) {
  const isEmpty = text.trim() === "";
  return (
    <>
      <p role="status" className={isEmpty || problems === null ? "quiet" : problems.length ? styles.bad : styles.good}>
        {isEmpty ? "Nothing to check yet." : problems === null ? "Checking…" : verdict(problems.length)}
      </p>
      {!isEmpty && problems && problems.length > 0 ? (
        <div className={isOld ? styles.old : undefined}>
          <ProblemList problems={problems} onLine={onLine} />
        </div>
      ) : null}
    </>
  );
}

function verdict(problems: number): string {
  return problems === 0 ? "✓ Nothing: it can be used." : `✕ ${counted(problems, "problem")}`;
}

/** The value, once it has not changed for so long. */
function useSettled(value: string, afterMs: number): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(value), afterMs);
    return () => window.clearTimeout(timer);
  }, [value, afterMs]);
  return settled;
}
