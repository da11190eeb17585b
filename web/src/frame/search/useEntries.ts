import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { answer, api } from "~/api/client";
import { jobsQuery, sessionQuery } from "~/api/queries";
import { signOut } from "~/frame/signOut";
import { chooseTheme, currentTheme } from "~/frame/theme";
import { VIEWS } from "~/frame/views";
import { lookOf } from "~/text/states";
import { offeredSections } from "~/views/settings/sections";
import type { Entry } from "./entries";

const FRESH_MS = 30_000;

/** Everything that can be found, as far as it has been fetched. */
export function useEntries(onKeys: () => void): { readonly entries: readonly Entry[]; readonly isFetching: boolean } {
  const navigate = useNavigate();
  const { data: session } = useQuery(sessionQuery);
  const jobs = useQuery({ ...jobsQuery({ ended: true, limit: 500 }), refetchInterval: false, staleTime: FRESH_MS });
  const models = useQuery({
    queryKey: ["models", "search"],
    queryFn: () => answer(api.GET("/api/models", { params: { query: { limit: 500 } } })),
    staleTime: FRESH_MS,
  });
  const recipes = useQuery({
    queryKey: ["recipes"],
    queryFn: () => answer(api.GET("/api/recipes")),
    staleTime: FRESH_MS,
  });

  const entries = useMemo(() => {
    const made: Entry[] = [];
    for (const job of jobs.data?.items ?? []) {
      made.push({
        id: `job-${job.id}`,
        group: "Trainings",
        label: job.name ?? job.id,
        detail: `${lookOf(job.shown).word} · ${job.recipe} · ${job.id}`,
        run: () => void navigate({ to: "/jobs/$job", params: { job: job.id } }),
      });
    }
    for (const model of models.data?.items ?? []) {
      made.push({
        id: `model-${model.slug}`,
        group: "Models",
        label: model.name,
        detail: `${model.slug} · ${model.recipe}`,
        words: `${model.trigger ?? ""} ${model.file_name}`,
        run: () => void navigate({ to: "/models/$model", params: { model: model.slug } }),
      });
    }
    for (const recipe of recipes.data?.items ?? []) {
      made.push({
        id: `recipe-${recipe.recipe}`,
        group: "Recipes",
        label: recipe.title,
        detail: recipe.recipe,
        run: () => void navigate({ to: "/recipes/$recipe", params: { recipe: recipe.recipe } }),
      });
    }
    const actions: readonly Omit<Entry, "group">[] = [
      ...(session?.rights.includes("train")
        ? [{ id: "new", label: "New training", words: "train start submit", run: () => void navigate({ to: "/new" }) }]
        : []),
      {
        id: "colours",
        label: currentTheme() === "dark" ? "Light colours" : "Dark colours",
        words: "theme dark light mode",
        run: () => chooseTheme(currentTheme() === "dark" ? "light" : "dark"),
      },
      { id: "keys", label: "Show the keys", words: "keyboard shortcuts help", run: onKeys },
      ...(session?.csrf_token
        ? [{ id: "leave", label: "Sign out", words: "log out leave", run: () => void signOut() }]
        : []),
    ];
    for (const action of actions) made.push({ ...action, group: "Actions" });
    for (const { to, label } of VIEWS) {
      made.push({ id: `view-${to}`, group: "Views", label, run: () => void navigate({ to }) });
    }
    made.push({ id: "view-/inbox", group: "Views", label: "Inbox", run: () => void navigate({ to: "/inbox" }) });
    for (const section of offeredSections(session?.rights ?? [], session?.role)) {
      made.push({
        id: `section-${section.name}`,
        group: "Settings",
        label: section.label,
        words: section.words,
        run: () => void navigate({ to: "/settings", search: { section: section.name } }),
      });
    }
    return made;
  }, [jobs.data, models.data, recipes.data, session, navigate, onKeys]);

  return { entries, isFetching: jobs.isLoading || models.isLoading || recipes.isLoading };
}
