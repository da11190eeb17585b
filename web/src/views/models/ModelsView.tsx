import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { answer, api } from "~/api/client";
import type { Model } from "~/api/documents";
import { Button } from "~/design/Button";
import { Empty, Loading } from "~/design/Empty";
import { Field } from "~/design/Field";
import { ProblemNote } from "~/design/ProblemNote";
import { useAddressValue } from "~/frame/address";
import { useTitle } from "~/frame/title";
import { counted } from "~/text/format";
import styles from "./ModelsView.module.css";
import { ModelTable } from "./ModelTable";
import { isWanted, recipeName } from "./models";
import { modelsQuery } from "./queries";

/** What costs each job had: the catalogue does not know. */
const costsQuery = {
  queryKey: ["overview", "costs of models"],
  queryFn: () => answer(api.GET("/api/overview", { params: { query: { ended_limit: 200 } } })),
  staleTime: 60_000,
};

/** All trained models, newest first. */
export function ModelsView() {
  useTitle("Models");
  const [text, setText] = useAddressValue("q");
  const [recipe, setRecipe] = useAddressValue("recipe");
  const [place, setPlace] = useAddressValue("place");
  const { data, error, refetch, fetchNextPage, hasNextPage, isFetchingNextPage } = useInfiniteQuery(modelsQuery);
  const { data: overview } = useQuery(costsQuery);

  if (error && !data) return <ProblemNote problem={error} onRetry={() => void refetch()} />;
  const models = (data?.pages ?? []).flatMap((page) => page.items);
  const shown = models.filter((model) =>
    isWanted(model, { text: text ?? "", recipe: recipe ?? "", place: place ?? "" }),
  );
  const costs = new Map(overview?.rows.map((row) => [row.id, row.cost_usd]));
  const clear = () => {
    setText(null);
    setRecipe(null);
    setPlace(null);
  };
  return (
    <>
      <div className={styles.head}>
        <h1>Models</h1>
        <p className="quiet" role="status">
          {data ? summary(shown.length, models.length, hasNextPage) : ""}
        </p>
      </div>
      {models.length > 0 ? (
        <div className={styles.filters}>
          <Field label="Search">
            {(control) => (
              <input
                {...control}
                type="search"
                placeholder="name, trigger, base model"
                value={text ?? ""}
                onChange={(event) => setText(event.target.value || null)}
              />
            )}
          </Field>
          <Choice label="Recipe" value={recipe} onChange={setRecipe} options={recipesOf(models)} />
          <Choice label="Place" value={place} onChange={setPlace} options={PLACES} />
        </div>
      ) : null}
      {!data ? <Loading what="the models" height={400} /> : null}
      {shown.length > 0 ? <ModelTable models={shown} costs={costs} /> : null}
      {data && models.length === 0 ? <NoModels /> : null}
      {models.length > 0 && shown.length === 0 ? (
        <Empty title="No model matches">
          <Button onClick={clear}>Show all models</Button>
        </Empty>
      ) : null}
      {hasNextPage ? (
        <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          Older models
        </Button>
      ) : null}
    </>
  );
}

const PLACES = [
  ["home", "Here"],
  ["bucket", "Bucket"],
  ["hub", "Hub"],
  ["comfydeploy", "ComfyDeploy"],
] as const;

interface ChoiceProps {
  readonly label: string;
  readonly value: string | null;
  readonly onChange: (value: string | null) => void;
  readonly options: readonly (readonly [string, string])[];
}

function Choice({ label, value, onChange, options }: ChoiceProps) {
  return (
    <Field label={label}>
      {(control) => (
        <select {...control} value={value ?? ""} onChange={(event) => onChange(event.target.value || null)}>
          <option value="">any</option>
          {options.map(([name, shown]) => (
            <option key={name} value={name}>
              {shown}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

function recipesOf(models: readonly Model[]): readonly (readonly [string, string])[] {
  return [...new Set(models.map((model) => recipeName(model.recipe)))].sort().map((name) => [name, name] as const);
}

function summary(shown: number, all: number, hasMore: boolean): string {
  if (all === 0) return "";
  const found = counted(all, "model");
  return shown === all ? `${found}${hasMore ? ", and older ones" : ""}` : `${shown} of ${found}`;
}

function NoModels() {
  return (
    <Empty title="No model yet">
      <p>
        When a training ends, its best checkpoint is kept here: with its trigger word, its samples and where it lies.
      </p>
      <Link to="/new">Start a training</Link>
    </Empty>
  );
}
