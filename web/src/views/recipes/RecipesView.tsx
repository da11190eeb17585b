import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { answer, api } from "~/api/client";
import { Loading } from "~/design/Empty";
import { ProblemNote } from "~/design/ProblemNote";
import { useTitle } from "~/frame/title";

/** All recipes, each in its newest version. */
export function RecipesView() {
  useTitle("Recipes");
  const { data, error, refetch } = useQuery({
    queryKey: ["recipes"],
    queryFn: () => answer(api.GET("/api/recipes")),
    staleTime: 60_000,
  });
  if (error) return <ProblemNote problem={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading what="the recipes" />;
  return (
    <>
      <h1>Recipes</h1>
      <ul>
        {data.items.map((recipe) => (
          <li key={recipe.recipe}>
            <Link to="/recipes/$recipe" params={{ recipe: recipe.recipe }}>
              {recipe.title}
            </Link>
          </li>
        ))}
      </ul>
    </>
  );
}
