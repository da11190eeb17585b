/** What is asked of a running training. The page shows it at once; the server says in words what happens now. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { answer, api } from "~/api/client";
import type { Job } from "~/api/documents";
import { asProblem } from "~/api/problem";
import { jobQuery } from "~/api/queries";
import { useSay } from "~/design/Toasts";

export type Request = "stop" | "cancel" | "cancel-keep" | "save" | "sample";

const DESIRED: Partial<Record<Request, Job["desired"]>> = {
  stop: "STOP",
  cancel: "CANCEL",
  "cancel-keep": "CANCEL_KEEP",
};

function ask(job: string, request: Request) {
  const params = { path: { job } };
  switch (request) {
    case "stop":
      return answer(api.POST("/api/jobs/{job}/stop", { params }));
    case "save":
      return answer(api.POST("/api/jobs/{job}/save", { params }));
    case "sample":
      return answer(api.POST("/api/jobs/{job}/sample", { params }));
    default:
      return answer(api.POST("/api/jobs/{job}/cancel", { params, body: { keep: request === "cancel-keep" } }));
  }
}

export function useRequest(job: Job) {
  const queries = useQueryClient();
  const say = useSay();
  const { queryKey } = jobQuery(job.id);
  return useMutation({
    mutationFn: (request: Request) => ask(job.id, request),
    onMutate: (request) => {
      const desired = DESIRED[request];
      if (desired) queries.setQueryData(queryKey, (old) => (old ? { ...old, desired } : old));
    },
    onSuccess: ({ note }) => say(note),
    onError: (error, request) => {
      const { message, hint } = asProblem(error);
      // Questions show their own problem; these two have no place for one.
      if (request === "save" || request === "sample") say(hint ? `${message}. ${hint}` : message);
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["job", job.id] }),
  });
}
