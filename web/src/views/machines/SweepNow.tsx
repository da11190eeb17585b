import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api } from "~/api/client";
import type { Sweep } from "~/api/documents";
import { Button } from "~/design/Button";
import { Confirm } from "~/design/Dialog";
import { useSay } from "~/design/Toasts";
import { counted } from "~/text/format";
import { actWords, isUnexplained } from "./machines";

/** Acts on what the sweep found, after showing what that is. */
export function SweepNow({ sweep }: { readonly sweep: Sweep }) {
  const [isAsked, setIsAsked] = useState(false);
  const queries = useQueryClient();
  const say = useSay();
  const doomed = sweep.machines.filter(isUnexplained);
  const run = useMutation({
    mutationFn: () => answer(api.POST("/api/instances/sweep")),
    onSuccess: ({ machines }) => {
      const acted = machines.filter((machine) => machine.done).length;
      say(acted === 0 ? "Swept: there was nothing to do" : `Swept: acted on ${counted(acted, "machine")}`);
      setIsAsked(false);
      for (const noun of ["instances", "overview"]) void queries.invalidateQueries({ queryKey: [noun] });
    },
  });
  return (
    <>
      <Button onClick={() => setIsAsked(true)}>Sweep now</Button>
      {isAsked ? (
        <Confirm
          open
          danger={doomed.length > 0}
          title="Sweep now?"
          action="Sweep now"
          busy={run.isPending}
          problem={run.error}
          onClose={() => {
            run.reset();
            setIsAsked(false);
          }}
          onConfirm={() => run.mutate()}
        >
          <p>Machines that no training needs are destroyed. A machine with the only copy of a model is only stopped.</p>
          {doomed.length === 0 ? <p>Right now it would change nothing.</p> : null}
          <ul>
            {doomed.map((machine) => (
              <li key={`${machine.provider}/${machine.instance}`}>
                Instance {machine.instance}: {actWords(machine.act)[1]}, {machine.why}
              </li>
            ))}
          </ul>
        </Confirm>
      ) : null}
    </>
  );
}
