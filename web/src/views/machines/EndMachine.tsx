import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api } from "~/api/client";
import type { Machine } from "~/api/documents";
import { Button } from "~/design/Button";
import { Confirm } from "~/design/Dialog";
import { useSay } from "~/design/Toasts";
import { counted } from "~/text/format";
import { aboutMachine, isUnexplained } from "./machines";

/** Ends one machine, after a question. */
export function EndMachine({ machine }: { readonly machine: Machine }) {
  const [isAsked, setIsAsked] = useState(false);
  const queries = useQueryClient();
  const say = useSay();
  const end = useMutation({
    mutationFn: () => {
      const machines = [{ instance: machine.instance, label: machine.label }];
      return answer(api.POST("/api/instances/destroy", { body: { machines, count: 1 } }));
    },
    onSuccess: ({ cancelled, report }) => {
      const found = report.machines.find((each) => each.instance === machine.instance);
      const also = cancelled.length > 0 ? `; ${counted(cancelled.length, "training")} cancelled` : "";
      say(
        found?.problem
          ? `${machine.instance} could not be ended: ${found.problem}`
          : `Ending instance ${machine.instance}${also}`,
      );
      setIsAsked(false);
      for (const noun of ["instances", "overview"]) void queries.invalidateQueries({ queryKey: [noun] });
    },
  });
  return (
    <>
      <Button
        kind={isUnexplained(machine) ? "danger" : "plain"}
        onClick={() => setIsAsked(true)}
        aria-label={`End it: instance ${machine.instance}`}
      >
        End it
      </Button>
      {isAsked ? (
        <Confirm
          open
          danger
          title={`End instance ${machine.instance}?`}
          action="End it"
          busy={end.isPending}
          problem={end.error}
          onClose={() => {
            end.reset();
            setIsAsked(false);
          }}
          onConfirm={() => end.mutate()}
        >
          <p>{aboutMachine(machine)}. It is destroyed at once, with everything on its disk.</p>
          {machine.job ? (
            <p>Its training {machine.job} is cancelled, if it still runs. Nothing of it is kept.</p>
          ) : null}
          <p className="quiet">Other machines that no training needs are swept at the same time.</p>
        </Confirm>
      ) : null}
    </>
  );
}
