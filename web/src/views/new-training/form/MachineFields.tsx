import { Field } from "~/design/Field";
import { dollarsPerHour } from "~/text/format";
import { Amount } from "./Amount";
import type { Problems } from "./checks";
import type { Change, Draft } from "./draft";
import { Grid, Section } from "./Section";

interface Props {
  readonly draft: Draft;
  readonly change: Change;
  readonly problems: Problems;
  /** Whether this person may choose where machines come from. */
  readonly mayChooseProvider: boolean;
  /** The provider that is asked if nothing is chosen. */
  readonly provider: string | null;
  /** The price limit of the job that is run again. */
  readonly oldMaxPrice?: number | null;
  readonly isRetry: boolean;
}

const PROVIDERS = ["vastai", "ssh", "loopback"];
const AT_LEAST = "At least this much; never less than the recipe needs.";

/** What is asked of the machine beyond what the recipe needs. */
export function MachineFields({ draft, change, problems, mayChooseProvider, provider, oldMaxPrice, isRetry }: Props) {
  const unless = isRetry ? "Empty: as before" : "Empty: no limit of yours";
  return (
    <Section title="Machine">
      <Grid>
        <Amount
          label="Highest price per hour, in dollars"
          problem={problems.maxPrice}
          help={`${unless}${oldMaxPrice ? ` (${dollarsPerHour(oldMaxPrice)})` : ""}. No machine above it is rented.`}
          value={draft.maxPrice}
          onChange={(maxPrice) => change({ maxPrice })}
        />
        <Amount
          label="Number of GPUs"
          problem={problems.gpus}
          help="Empty: as many as the recipe needs. More only where it can train on several."
          value={draft.gpus}
          onChange={(gpus) => change({ gpus })}
        />
        <Amount
          label="GPU memory, in GB"
          problem={problems.vramGib}
          help={AT_LEAST}
          value={draft.vramGib}
          onChange={(vramGib) => change({ vramGib })}
        />
        <Amount
          label="Disk, in GB"
          problem={problems.diskGib}
          help={AT_LEAST}
          value={draft.diskGib}
          onChange={(diskGib) => change({ diskGib })}
        />
        {mayChooseProvider && !isRetry ? (
          <Field
            label="Provider"
            problem={problems.provider}
            help={`Where the machine comes from. Empty: ${provider ?? "the server’s own choice"}.`}
          >
            {(control) => (
              <>
                <input
                  {...control}
                  list={`${control.id}-known`}
                  autoComplete="off"
                  spellCheck={false}
                  value={draft.provider}
                  onChange={(event) => change({ provider: event.target.value })}
                />
                <datalist id={`${control.id}-known`}>
                  {PROVIDERS.map((name) => (
                    <option key={name} value={name} />
                  ))}
                </datalist>
              </>
            )}
          </Field>
        ) : null}
      </Grid>
    </Section>
  );
}
