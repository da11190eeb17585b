import { useQuery } from "@tanstack/react-query";
import type { FormEvent } from "react";
import type { Recipe } from "~/api/documents";
import { sessionQuery } from "~/api/queries";
import { Button } from "~/design/Button";
import { Field } from "~/design/Field";
import { ProblemNote } from "~/design/ProblemNote";
import { counted } from "~/text/format";
import { ConfirmTerms } from "./confirm/ConfirmTerms";
import type { useProposing } from "./confirm/proposing";
import { CostColumn } from "./cost/CostColumn";
import { type Forecast, useOffers } from "./cost/forecast";
import { trainWords } from "./cost/words";
import { referenceOf } from "./form/bodies";
import { fieldOf, problemsOf, withRefusal } from "./form/checks";
import type { Change, Draft } from "./form/draft";
import { LimitFields } from "./form/LimitFields";
import { MachineFields } from "./form/MachineFields";
import { ParameterGroups } from "./form/ParameterGroups";
import { Grid, Section } from "./form/Section";
import type { RetryBase } from "./retry/base";
import styles from "./TrainingForm.module.css";

interface Props {
  readonly recipe: Recipe;
  readonly draft: Draft;
  readonly change: Change;
  readonly forecast: {
    readonly data: Forecast | undefined;
    readonly error: unknown;
    readonly isPlaceholderData: boolean;
    readonly isLoading: boolean;
    readonly refetch: () => unknown;
  };
  readonly steps: ReturnType<typeof useProposing>;
  readonly images: number;
  readonly isAssumed: boolean;
  /** What keeps it from being proposed; null: nothing. */
  readonly blocker: string | null;
  /** The recipe and the dataset, or what the job is like. */
  readonly head: (problems: Readonly<Record<string, string>>) => React.ReactNode;
  readonly retry?: RetryBase;
}

/** The form on the left, what it will cost on the right. */
export function TrainingForm({ recipe, draft, change, forecast, steps, head, retry, ...about }: Props) {
  const { data: session } = useQuery(sessionQuery);
  const own = problemsOf(draft, recipe);
  const isWrong = Object.keys(own).length > 0;
  const refusal = steps.proposal === null ? steps.proposing.error : null;
  const problems = withRefusal(withRefusal(own, refusal), isWrong ? null : forecast.error);
  const offers = useOffers(
    {
      recipe: referenceOf(recipe),
      provider: retry ? retry.terms.provider : draft.provider.trim(),
      maxPrice: own.maxPrice ? "" : draft.maxPrice.trim(),
      diskGib: draft.diskGib,
      gpus: own.gpus ? "" : draft.gpus,
    },
    forecast.data ?? null,
  );
  const blocker = isWrong
    ? `${counted(Object.keys(own).length, "field is", "fields are")} not valid yet.`
    : about.blocker;
  const mayGoOn = blocker === null && !forecast.error;

  function submit(event: FormEvent): void {
    event.preventDefault();
    if (mayGoOn) steps.begin();
  }

  return (
    <form className={styles.page} onSubmit={submit} noValidate>
      <div className={styles.form}>
        {head(problems)}
        <Section title="Name and trigger">
          <Grid>
            <Field label="Name" problem={problems.name} help="Of the model. Empty: the dataset's name.">
              {(control) => (
                <input
                  {...control}
                  autoComplete="off"
                  value={draft.name}
                  onChange={(event) => change({ name: event.target.value })}
                />
              )}
            </Field>
            {recipe.dataset?.kind === "text" ? null : (
              <Field
                label="Trigger"
                problem={problems.trigger}
                help="A word that stands for the subject in prompts, such as ohwx. Captions should contain it."
              >
                {(control) => (
                  <input
                    {...control}
                    autoComplete="off"
                    spellCheck={false}
                    value={draft.trigger}
                    onChange={(event) => change({ trigger: event.target.value })}
                  />
                )}
              </Field>
            )}
          </Grid>
        </Section>
        <ParameterGroups
          recipe={recipe}
          draft={draft}
          change={change}
          problems={problems}
          before={retry?.job.parameters}
        />
        <MachineFields
          draft={draft}
          change={change}
          problems={problems}
          mayChooseProvider={session?.rights.includes("manage") ?? false}
          provider={forecast.data?.provider ?? null}
          oldMaxPrice={retry?.job.limits.max_price_per_hour_usd}
          isRetry={retry !== undefined}
        />
        <LimitFields draft={draft} change={change} problems={problems} isRetry={retry !== undefined} />
      </div>
      <div className={styles.cost}>
        <CostColumn
          forecast={forecast.data ?? null}
          problem={isWrong || forecast.isPlaceholderData ? null : forecast.error}
          isOld={forecast.isPlaceholderData || isWrong}
          isWaiting={forecast.isLoading}
          ranking={offers.data}
          maxPrice={draft.maxPrice}
          onMaxPrice={(maxPrice) => change({ maxPrice })}
          onRetry={() => void forecast.refetch()}
          images={about.images}
          isAssumed={about.isAssumed}
        >
          {refusal ? <ProblemNote problem={refusal} /> : null}
          {refusal && fieldOf(refusal) ? <p className="quiet">It is marked at its field.</p> : null}
          <Button
            kind="main"
            type="submit"
            className={styles.train}
            busy={steps.proposing.isPending}
            disabled={!mayGoOn}
          >
            {forecast.data && !forecast.error ? trainWords(forecast.data) : "Train"}
          </Button>
          {blocker ? (
            <p className="quiet" role="status">
              {blocker}
            </p>
          ) : (
            <p className="quiet">You confirm the exact price in the next step.</p>
          )}
        </CostColumn>
      </div>
      <ConfirmTerms steps={steps} />
    </form>
  );
}
