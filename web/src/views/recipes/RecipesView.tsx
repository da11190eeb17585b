import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Empty, Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { Tabs } from "~/design/Tabs";
import { useAddressValue } from "~/frame/address";
import { useTitle } from "~/frame/title";
import { ProblemList } from "./ProblemList";
import { recipesQuery } from "./queries";
import { RecipeCheck } from "./RecipeCheck";
import styles from "./RecipesView.module.css";
import { datasetWord, needsOf } from "./recipes";

/** All recipes, each in its newest version; and a place where those who write one see what is wrong with it. */
export function RecipesView() {
  useTitle("Recipes");
  const [tab, setTab] = useAddressValue("tab");
  return (
    <>
      <h1>Recipes</h1>
      <Tabs
        label="Recipes"
        chosen={tab === "check" ? "check" : "all"}
        onChoose={(name) => setTab(name === "all" ? null : name)}
        tabs={[
          { name: "all", label: "All recipes", content: <AllRecipes /> },
          { name: "check", label: "Check your own", content: <RecipeCheck /> },
        ]}
      />
    </>
  );
}

function AllRecipes() {
  const { data, error, refetch } = useQuery(recipesQuery);
  if (error && !data) return <ProblemNote problem={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading what="the recipes" height={320} />;
  const problems = data.problems ?? [];
  return (
    <>
      {problems.length > 0 ? (
        <section className={styles.problems} aria-labelledby="recipe-problems">
          <h2 id="recipe-problems">Recipes that cannot be used</h2>
          <ProblemList problems={problems} withFiles />
        </section>
      ) : null}
      {data.items.length === 0 ? <Empty title="No recipe can be used">Correct those above.</Empty> : null}
      <ul className={styles.list}>
        {data.items.map(({ recipe: reference, title, definition }) => (
          <li key={reference} className={styles.recipe}>
            <div className={styles.name}>
              <Link to="/recipes/$recipe" params={{ recipe: reference }}>
                {title}
              </Link>
              <code className="quiet">{reference}</code>
            </div>
            {definition ? (
              <>
                <p className={styles.about}>{firstSentence(definition.description)}</p>
                <p className={styles.needs}>
                  from {datasetWord(definition)}
                  {definition.framework && definition.framework !== "auto" ? ` with ${definition.framework}` : ""};{" "}
                  {needsOf(definition)}
                </p>
              </>
            ) : null}
            <Link to="/new" search={{ recipe: reference } as never} className={styles.train}>
              Train with it<span className="visually-hidden">: {title}</span>
            </Link>
          </li>
        ))}
      </ul>
    </>
  );
}

function firstSentence(text: string): string {
  const end = text.search(/\.(\s|$)/);
  return end < 0 ? text : text.slice(0, end + 1);
}
