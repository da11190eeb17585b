import { Empty } from "~/design/Empty";
import { RunPicker } from "./RunPicker";

interface Props {
  /** None or one: with another one there is something to compare. */
  readonly chosen: readonly string[];
  readonly onChoose: (jobs: readonly string[]) => void;
}

/** In place of a comparison: recent runs to choose from. */
export function NothingToCompare({ chosen, onChoose }: Props) {
  const [first] = chosen;
  return (
    <>
      <Empty title={first === undefined ? "Choose runs to compare" : `Choose a run to compare with ${first}`}>
        <p>
          {first === undefined
            ? "Two to eight trainings side by side: what differs, their charts and samples, and what came of them."
            : "The comparison opens as soon as a second run is chosen."}
        </p>
      </Empty>
      {first === undefined ? (
        <RunPicker without={[]} several onPickSeveral={onChoose} />
      ) : (
        <RunPicker without={chosen} onPick={(id) => onChoose([first, id])} />
      )}
    </>
  );
}
