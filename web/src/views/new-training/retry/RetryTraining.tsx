import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { answer, api } from "~/api/client";
import type { Recipe } from "~/api/documents";
import { jobQuery } from "~/api/queries";
import { Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { counted } from "~/text/format";
import { useProposing } from "../confirm/proposing";
import { useRetryTerms } from "../cost/forecast";
import { referenceOf, retryBody, retryOf } from "../form/bodies";
import { problemsOf } from "../form/checks";
import { type Draft, EMPTY, useDraft } from "../form/draft";
import { textOf } from "../form/parameters";
import { Section } from "../form/Section";
import type { Retry } from "../prefill";
import { TrainingForm } from "../TrainingForm";
import type { RetryBase } from "./base";
import { Differences } from "./Differences";
import { differencesOf } from "./differences";

interface Props {
  readonly retry: Retry;
  readonly recipes: readonly Recipe[];
}

/** A job that is run again, with what its analysis recommends and further changes. */
export function RetryTraining({ retry, recipes }: Props) {
  const job = useQuery(jobQuery(retry.job));
  const terms = useQuery({
    queryKey: ["estimate", "retry-base", retry],
    queryFn: () =>
      answer(api.POST("/api/jobs/{job}/retry/terms", { params: { path: { job: retry.job } }, body: retryBody(retry) })),
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
  });
  const recipe = recipes.find((one) => referenceOf(one) === job.data?.recipe);
  const older = useQuery({
    queryKey: ["recipes", job.data?.recipe],
    queryFn: () => answer(api.GET("/api/recipes/{recipe}", { params: { path: { recipe: job.data?.recipe ?? "" } } })),
    enabled: job.data !== undefined && recipe === undefined,
  });
  const used = recipe ?? older.data;
  const error = job.error ?? terms.error ?? older.error;
  if (error) {
    return (
      <>
        <ProblemNote problem={error} onRetry={() => void (job.error ? job.refetch() : terms.refetch())} />
        {retry.apply !== "nothing" && job.data ? (
          <p>
            <Link to="/new" search={{ retry: retry.job } as never}>
              Run it again without the analysis
            </Link>
          </p>
        ) : null}
      </>
    );
  }
  if (!job.data || !terms.data || !used) return <Loading what="the training" height={640} />;
  return <WithBase retry={retry} recipe={used} base={{ job: job.data, terms: terms.data }} />;
}

function WithBase(props: { readonly retry: Retry; readonly recipe: Recipe; readonly base: RetryBase }) {
  const { retry, recipe, base } = props;
  const place = `retry.${base.job.id}.${typeof retry.apply === "string" ? retry.apply : retry.apply.join(",")}`;
  const { draft, change, forget } = useDraft(place, draftOf(base, recipe));
  const isWrong = Object.keys(problemsOf({ ...draft, dataset: "" }, recipe)).length > 0;
  const body = isWrong ? null : retryOf(draft, recipe, retry, base);
  const forecast = useRetryTerms(base.job.id, body);
  const steps = useProposing({
    propose: () =>
      answer(
        api.POST("/api/jobs/{job}/retry", {
          params: { path: { job: base.job.id } },
          body: retryOf(draft, recipe, retry, base),
        }),
      ),
    forget,
  });
  return (
    <TrainingForm
      recipe={recipe}
      draft={draft}
      change={change}
      forecast={forecast}
      steps={steps}
      images={base.terms.images}
      isAssumed={false}
      blocker={null}
      retry={base}
      head={() => (
        <>
          <Differences base={base} retry={retry} differences={differencesOf(draft, recipe, base)} />
          <Section title="Recipe and dataset">
            <p>
              {recipe.title} ({base.job.recipe}) on {sourceOf(base.job.dataset.source)} (
              {counted(base.job.dataset.images, "picture")}).{" "}
              <Link to="/new" search={otherSearch(base) as never}>
                Use another recipe or dataset
              </Link>
            </p>
          </Section>
        </>
      )}
    />
  );
}

function draftOf({ job, terms }: RetryBase, recipe: Recipe): Draft {
  const parameters = Object.keys(recipe.parameters ?? {}).map(
    (name) => [name, textOf(terms.parameters[name])] as const,
  );
  return {
    ...EMPTY,
    recipe: job.recipe,
    dataset: "",
    name: job.name,
    trigger: job.trigger ?? "",
    parameters: Object.fromEntries(parameters),
  };
}

/** `upload:ID (cats)` is for machines; people know the name. */
function sourceOf(source: string): string {
  return /^upload:[0-9a-f]{32} \((.*)\)$/s.exec(source)?.[1] ?? source;
}

function otherSearch({ job }: RetryBase): Record<string, string> {
  const upload = /^upload:([0-9a-f]{32})/.exec(job.dataset.source)?.[0];
  const address = /^(s3|hf):\/\//.test(job.dataset.source) ? job.dataset.source : upload;
  return { recipe: job.recipe, ...(address ? { dataset: address } : {}) };
}
