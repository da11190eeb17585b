/** What the views of recipes ask for. */
import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "~/api/client";

export const recipesQuery = queryOptions({
  queryKey: ["recipes", "with definitions"],
  queryFn: () => answer(api.GET("/api/recipes", { params: { query: { with_definitions: true } } })),
  staleTime: 60_000,
});

export const recipeQuery = (recipe: string) =>
  queryOptions({
    queryKey: ["recipes", recipe],
    queryFn: () => answer(api.GET("/api/recipes/{recipe}", { params: { path: { recipe } } })),
    staleTime: 60_000,
  });
