import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { answer, api } from "~/api/client";
import { sessionQuery } from "~/api/queries";
import { Empty, Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { useTitle } from "~/frame/title";
import styles from "./NewTrainingView.module.css";
import { PlainTraining } from "./PlainTraining";
import { usePrefill } from "./prefill";
import { RetryTraining } from "./retry/RetryTraining";

/** A training before it exists: the form, what it will cost, and the question before money is spent. */
export function NewTrainingView() {
  const prefill = usePrefill();
  const { retry } = prefill;
  const title = retry === null ? "New training" : "Train again";
  useTitle(title);
  const { data: session } = useQuery(sessionQuery);
  const { data, error, refetch } = useQuery({
    queryKey: ["recipes", "definitions"],
    queryFn: () => answer(api.GET("/api/recipes", { params: { query: { with_definitions: true } } })),
    staleTime: 60_000,
  });
  const recipes = data?.items.map((one) => one.definition).filter((one) => one !== null && one !== undefined) ?? [];
  const mayTrain = session?.rights.includes("train") ?? true;
  return (
    <div className={styles.view}>
      <h1>{title}</h1>
      {mayTrain ? null : (
        <Empty title="You may look, but not train">
          <p>
            Your rights do not include training. Ask the operator for a token that does, or go back to the{" "}
            <Link to="/">trainings</Link>.
          </p>
        </Empty>
      )}
      {mayTrain && error ? <ProblemNote problem={error} onRetry={() => void refetch()} /> : null}
      {mayTrain && !data && !error ? <Loading what="the recipes" height={640} /> : null}
      {mayTrain && data && recipes.length === 0 ? (
        <Empty title="There is no recipe yet">
          <p>
            See <Link to="/recipes">Recipes</Link> for what is wrong with those that cannot be used.
          </p>
        </Empty>
      ) : null}
      {mayTrain && recipes.length > 0 ? (
        retry === null ? (
          <PlainTraining key={`${prefill.recipe} ${prefill.dataset}`} recipes={recipes} prefill={prefill} />
        ) : (
          <RetryTraining key={JSON.stringify(retry)} recipes={recipes} retry={retry} />
        )
      ) : null}
    </div>
  );
}
