/** What can be done with a training, by its state and the user's rights. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { Job } from "~/api/documents";
import { sessionQuery } from "~/api/queries";
import { Button } from "~/design/Button";
import { Menu, type MenuEntry } from "~/design/Menu";
import { recipeQuery } from "../queries";
import styles from "./JobHeader.module.css";
import { type Question, Questions } from "./Questions";
import { useRequest } from "./useRequest";

export function Actions({ job }: { readonly job: Job }) {
  const { data: session } = useQuery(sessionQuery);
  const navigate = useNavigate();
  const request = useRequest(job);
  const [question, setQuestion] = useState<Question | null>(null);
  const isGoing = job.outcome === null;
  const { data: recipe } = useQuery({ ...recipeQuery(job.recipe), enabled: isGoing });
  const mayTrain = session?.rights.includes("train") ?? false;
  const compare: MenuEntry = {
    label: "Compare with…",
    onSelect: () => void navigate({ to: "/compare", search: { jobs: job.id } as never }),
  };
  if (!mayTrain) {
    return (
      <div className={styles.actions}>
        <Button onClick={compare.onSelect}>Compare with…</Button>
      </div>
    );
  }
  const isEnding = job.desired !== "RUN";
  const entries: MenuEntry[] = isGoing
    ? [
        ...(job.state === "EXECUTING" && recipe?.stop?.save
          ? [{ label: "Save a checkpoint now", onSelect: () => request.mutate("save") }]
          : []),
        ...(job.state === "EXECUTING" && recipe?.samples?.now
          ? [{ label: "Make samples now", onSelect: () => request.mutate("sample") }]
          : []),
        compare,
        "line",
        { label: "Cancel…", danger: true, onSelect: () => setQuestion("cancel") },
      ]
    : [
        compare,
        ...(job.state === "ENDED"
          ? (["line", { label: "Remove…", danger: true, onSelect: () => setQuestion("remove") }] satisfies MenuEntry[])
          : []),
      ];
  return (
    <div className={styles.actions}>
      {isGoing ? (
        <Button disabled={isEnding} onClick={() => setQuestion("stop")}>
          {job.desired === "RUN" ? "Stop and keep…" : "Stopping…"}
        </Button>
      ) : null}
      {job.state === "ENDED" ? (
        <Button onClick={() => void navigate({ to: "/new", search: { retry: job.id } as never })}>Train again…</Button>
      ) : null}
      <Menu trigger={<Button aria-label="More actions">⋯</Button>} entries={entries} />
      <Questions job={job} question={question} onClose={() => setQuestion(null)} />
    </div>
  );
}
