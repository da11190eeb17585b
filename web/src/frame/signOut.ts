import { api, done } from "~/api/client";

/** Ends this browser's session. The page is loaded anew: nothing that was shown stays in its memory. */
export async function signOut(): Promise<void> {
  await done(api.DELETE("/api/session"));
  window.location.assign("/sign-in");
}
