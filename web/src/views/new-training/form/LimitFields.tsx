import { Field } from "~/design/Field";
import { Amount } from "./Amount";
import type { Problems } from "./checks";
import type { Change, Draft } from "./draft";
import { Folded, Grid, Section } from "./Section";

interface Props {
  readonly draft: Draft;
  readonly change: Change;
  readonly problems: Problems;
  readonly isRetry: boolean;
}

/** When the training is stopped whatever it does, and how it is watched. */
export function LimitFields({ draft, change, problems, isRetry }: Props) {
  const unless = isRetry ? "Empty: as before, or by the new estimate." : "Empty: twice the high estimate.";
  return (
    <Section title="Limits">
      <Grid>
        <Amount
          label="Stop after, in hours"
          problem={problems.maxHours}
          help={unless}
          value={draft.maxHours}
          onChange={(maxHours) => change({ maxHours })}
        />
        <Amount
          label="Stop at a cost of, in dollars"
          problem={problems.maxSpend}
          help={unless}
          value={draft.maxSpend}
          onChange={(maxSpend) => change({ maxSpend })}
        />
      </Grid>
      {isRetry ? null : <Monitoring draft={draft} change={change} />}
    </Section>
  );
}

function Monitoring({ draft, change }: Pick<Props, "draft" | "change">) {
  const set = (name: string) => (value: string) => change({ monitoring: { ...draft.monitoring, [name]: value } });
  const of = (name: string) => draft.monitoring[name] ?? "";
  return (
    <Folded title="Monitoring" note="(empty: the server’s settings)">
      <Grid>
        <Amount
          label="Minutes from a stall alert to the stop"
          help="Time for you to look before a training without progress is stopped. Default: 15."
          value={of("graceMinutes")}
          onChange={set("graceMinutes")}
        />
        <Amount
          label="Seconds between samples of the machine"
          help="Memory, CPU and GPU use. Default: 5."
          value={of("sampleSeconds")}
          onChange={set("sampleSeconds")}
        />
        <Amount
          label="Warn above this memory use, in percent"
          help="Of the GPU’s or the system’s memory. Default: 85."
          value={of("memoryWarning")}
          onChange={set("memoryWarning")}
        />
        <Field label="Analyse it when it ends" help="Recommends settings for the next training.">
          {(control) => (
            <input
              {...control}
              type="checkbox"
              checked={of("analyse") !== "false"}
              onChange={(event) => set("analyse")(event.target.checked ? "" : "false")}
            />
          )}
        </Field>
      </Grid>
    </Folded>
  );
}
