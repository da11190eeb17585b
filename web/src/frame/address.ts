/** What the address carries behind its question mark, so that a link shows the same picture. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";

/** One value of the address, and what changes it; null removes it. The change makes no step in the history. */
export function useAddressValue(name: string): [string | null, (value: string | number | null) => void] {
  const search: Record<string, unknown> = useSearch({ strict: false });
  const navigate = useNavigate();
  const change = useCallback(
    (value: string | number | null) =>
      void navigate({
        to: ".",
        search: ((before: Record<string, unknown>) => ({ ...before, [name]: value ?? undefined })) as never,
        replace: true,
        resetScroll: false,
      }),
    [name, navigate],
  );
  const value = search[name];
  return [value === undefined || value === null ? null : String(value), change];
}
