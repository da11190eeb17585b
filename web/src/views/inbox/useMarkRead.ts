import { useQueryClient } from "@tanstack/react-query";
import { markRead } from "~/api/inbox";
import { asProblem } from "~/api/problem";
import { useSay } from "~/design/Toasts";

/** Marks messages as read at once, with an undo. */
export function useMarkRead(): (upTo: number) => void {
  const queries = useQueryClient();
  const say = useSay();
  return (upTo) => {
    const takeBack = markRead(
      upTo,
      () => void queries.invalidateQueries({ queryKey: ["inbox"] }),
      (problem) => {
        takeBack();
        say(`The messages are still unread: ${asProblem(problem).message}`);
      },
    );
    say("Marked as read", takeBack);
  };
}
