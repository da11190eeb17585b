import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { ProblemNote } from "~/design/ProblemNote";
import { DropZone } from "./DropZone";
import type { Dropped } from "./upload/dropped";
import { beginUpload } from "./upload/uploads";

/** Takes files for an upload that no recipe is chosen for yet. */
export function NewUpload() {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>(null);

  async function begin(dropped: Dropped): Promise<void> {
    setBusy(true);
    setProblem(null);
    try {
      const upload = await beginUpload(dropped, { name: dropped.folder ?? "dataset", recipe: null, trigger: null });
      await queries.invalidateQueries({ queryKey: ["datasets"] });
      await navigate({ to: "/datasets", search: { upload: upload.id } as never });
    } catch (error) {
      setProblem(error);
    }
    setBusy(false);
  }

  return (
    <>
      <DropZone title="Drop a folder of pictures and captions here" busy={isBusy} onDropped={(it) => void begin(it)} />
      {problem ? <ProblemNote problem={problem} /> : null}
    </>
  );
}
