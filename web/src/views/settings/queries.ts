import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "~/api/client";

/** All users for an administrator, oneself for others; without the single user of the settings. */
export const usersQuery = queryOptions({
  queryKey: ["users"],
  queryFn: () => answer(api.GET("/api/users")),
});
