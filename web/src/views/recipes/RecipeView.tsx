import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import type { Recipe } from "~/api/documents";
import { sessionQuery } from "~/api/queries";
import { buttonClass } from "~/design/Button";
import { Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { useTitle } from "~/frame/title";
import { ParameterTable } from "./ParameterTable";
import { recipeQuery } from "./queries";
import styles from "./RecipeView.module.css";
import { abilitiesOf, datasetRules, needsOf, secretsOf, withDefaults } from "./recipes";
import { Steps } from "./Steps";

/** One recipe: what it makes, what it needs, what can be set, what it runs. */
export function RecipeView() {
  const { recipe: reference } = useParams({ strict: false });
  const { data: recipe, error, refetch } = useQuery(recipeQuery(reference ?? ""));
  useTitle(recipe?.title ?? "Recipe");
  if (error && !recipe) return <ProblemNote problem={error} onRetry={() => void refetch()} />;
  if (!recipe) return <Loading what="the recipe" height={480} />;
  return <Shown recipe={recipe} />;
}

function Shown({ recipe }: { readonly recipe: Recipe }) {
  const { data: session } = useQuery(sessionQuery);
  const reference = `${recipe.name}@${recipe.version}`;
  return (
    <>
      <div className={styles.head}>
        <div>
          <h1>{recipe.title}</h1>
          <p className="quiet">
            <code>{reference}</code>
            {recipe.framework && recipe.framework !== "auto" ? ` with ${recipe.framework}` : ""}
          </p>
        </div>
        {session?.rights.includes("train") ? (
          <Link to="/new" search={{ recipe: reference } as never} className={buttonClass("main")}>
            Train with it
          </Link>
        ) : null}
      </div>
      <p className={styles.description}>{recipe.description}</p>
      <div className={styles.columns}>
        <div className={styles.column}>
          <Facts title="What it needs" facts={needs(recipe)} />
          <Facts title="The dataset" facts={datasetRules(recipe)} />
          <section>
            <h2>What it can do</h2>
            <ul className={styles.facts}>
              {abilitiesOf(recipe).map(({ can, what }) => (
                <li key={what} className={can ? undefined : "quiet"}>
                  {can ? "✓ Can" : "– Cannot"} {what}
                </li>
              ))}
            </ul>
          </section>
          <Facts title="What it leaves" facts={outputs(recipe)} isCode />
        </div>
        <div className={styles.column}>
          <ParameterTable parameters={recipe.parameters ?? {}} />
          <Steps recipe={recipe} />
        </div>
      </div>
    </>
  );
}

interface FactsProps {
  readonly title: string;
  readonly facts: readonly string[];
  readonly isCode?: boolean;
}

function Facts({ title, facts, isCode = false }: FactsProps) {
  if (facts.length === 0) return null;
  return (
    <section>
      <h2>{title}</h2>
      <ul className={styles.facts}>
        {facts.map((fact) => (
          <li key={fact}>{isCode ? <code>{fact}</code> : fact}</li>
        ))}
      </ul>
    </section>
  );
}

function needs(recipe: Recipe): readonly string[] {
  const cuda = recipe.needs?.cuda;
  const secrets = secretsOf(recipe);
  return [
    `${needsOf(recipe)}.`,
    cuda ? `A driver for CUDA ${cuda.toFixed(1)} or later.` : "",
    (recipe.nodes ?? 1) > 1 ? `${recipe.nodes} machines that train together.` : "",
    recipe.image ? `The image ${recipe.image}.` : "",
    secrets.length > 0 ? `${secrets.length > 1 ? "Secrets" : "A secret"}: ${secrets.join(", ")}.` : "No secret.",
    ...(recipe.gated ?? []).map(
      (each) => `Access to ${withDefaults(each.repository, recipe)}: accept its licence on the Hub.`,
    ),
  ].filter(Boolean);
}

function outputs(recipe: Recipe): readonly string[] {
  return [
    ...recipe.outputs.map((each) => `${each.pattern} (${each.kind})`),
    ...(recipe.samples ? [`${recipe.samples.pattern} (sample)`] : []),
  ];
}
