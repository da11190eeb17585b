/**
 * All addresses of the page. The trainings, where everybody begins, come with the page;
 * each other view is a file of its own that is fetched when it is first opened.
 */
import type { QueryClient } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  type RouteComponent,
  redirect,
} from "@tanstack/react-router";
import { setCsrfToken } from "~/api/client";
import { connection } from "~/api/connection";
import { asProblem } from "~/api/problem";
import { sessionQuery } from "~/api/queries";
import { Frame } from "~/frame/Frame";
import { NotFound } from "~/frame/NotFound";
import { ViewProblem } from "~/frame/ViewProblem";
import { stringifySearch } from "~/search";
import { FleetView } from "~/views/fleet/FleetView";

interface Context {
  readonly queries: QueryClient;
}

const root = createRootRouteWithContext<Context>()({ component: Outlet, notFoundComponent: NotFound });

const signIn = createRoute({
  getParentRoute: () => root,
  path: "/sign-in",
  component: lazyRouteComponent(() => import("~/views/sign-in/SignInView"), "SignInView"),
});

/** Everything that needs a signed-in user. */
const inside = createRoute({
  getParentRoute: () => root,
  id: "inside",
  component: Frame,
  beforeLoad: async ({ context, location }) => {
    try {
      const session = await context.queries.ensureQueryData(sessionQuery);
      setCsrfToken(session.csrf_token);
      connection.signedIn();
      return { session };
    } catch (error) {
      if (asProblem(error).status === 401) throw redirect({ to: "/sign-in", search: { next: location.href } });
      throw error;
    }
  },
  errorComponent: ViewProblem,
});

const view = <Path extends string>(path: Path, component: RouteComponent) =>
  createRoute({ getParentRoute: () => inside, path, component, errorComponent: ViewProblem });

const routes = root.addChildren([
  signIn,
  inside.addChildren([
    view("/", FleetView),
    view(
      "/jobs/$job",
      lazyRouteComponent(() => import("~/views/job/JobView"), "JobView"),
    ),
    view(
      "/new",
      lazyRouteComponent(() => import("~/views/new-training/NewTrainingView"), "NewTrainingView"),
    ),
    view(
      "/compare",
      lazyRouteComponent(() => import("~/views/compare/CompareView"), "CompareView"),
    ),
    view(
      "/machines",
      lazyRouteComponent(() => import("~/views/machines/MachinesView"), "MachinesView"),
    ),
    view(
      "/models",
      lazyRouteComponent(() => import("~/views/models/ModelsView"), "ModelsView"),
    ),
    view(
      "/models/$model",
      lazyRouteComponent(() => import("~/views/models/ModelView"), "ModelView"),
    ),
    view(
      "/datasets",
      lazyRouteComponent(() => import("~/views/datasets/DatasetsView"), "DatasetsView"),
    ),
    view(
      "/recipes",
      lazyRouteComponent(() => import("~/views/recipes/RecipesView"), "RecipesView"),
    ),
    view(
      "/recipes/$recipe",
      lazyRouteComponent(() => import("~/views/recipes/RecipeView"), "RecipeView"),
    ),
    view(
      "/money",
      lazyRouteComponent(() => import("~/views/money/MoneyView"), "MoneyView"),
    ),
    view(
      "/inbox",
      lazyRouteComponent(() => import("~/views/inbox/InboxView"), "InboxView"),
    ),
    view(
      "/settings",
      lazyRouteComponent(() => import("~/views/settings/SettingsView"), "SettingsView"),
    ),
  ]),
]);

export function createPageRouter(queries: QueryClient) {
  return createRouter({
    routeTree: routes,
    context: { queries },
    stringifySearch,
    defaultPreload: "intent",
    scrollRestoration: true,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof createPageRouter>;
  }
}
