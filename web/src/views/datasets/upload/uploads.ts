/** The uploads that this page sends, as a store that views subscribe to. */
import { queryOptions, useQueryClient } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import { answer, api } from "~/api/client";
import type { Upload } from "~/api/documents";
import type { Dropped } from "./dropped";
import { type Snapshot, Uploader } from "./uploader";

const uploaders = new Map<string, Uploader>();

export function uploaderOf(upload: string): Uploader {
  let found = uploaders.get(upload);
  if (!found) {
    found = new Uploader(upload);
    uploaders.set(upload, found);
  }
  return found;
}

export function forgetUploader(upload: string): void {
  uploaders.get(upload)?.pause();
  uploaders.delete(upload);
}

/** Begin an upload of these files. Returns it as soon as it has an id. */
export async function beginUpload(
  dropped: Dropped,
  about: { readonly name: string; readonly recipe: string | null; readonly trigger: string | null },
): Promise<Upload> {
  const upload = await answer(api.POST("/api/datasets", { body: about }));
  uploaderOf(upload.id).add(dropped);
  return upload;
}

/** How far this page is with sending it; what the server knows is fetched again when it has arrived. */
export function useUploader(upload: string): Snapshot {
  const uploader = uploaderOf(upload);
  const snapshot = useSyncExternalStore(uploader.subscribe, uploader.snapshot);
  const queries = useQueryClient();
  useEffect(() => {
    if (snapshot.state === "done") void queries.invalidateQueries({ queryKey: ["datasets"] });
  }, [snapshot.state, queries]);
  return snapshot;
}

export const uploadsQuery = queryOptions({
  queryKey: ["datasets"],
  queryFn: () => answer(api.GET("/api/datasets", { params: { query: { limit: 100 } } })),
});

export const uploadQuery = (upload: string) =>
  queryOptions({
    queryKey: ["datasets", upload],
    queryFn: () => answer(api.GET("/api/datasets/{upload}", { params: { path: { upload } } })),
  });

/** The check of the whole dataset against a recipe; it reads every picture. */
export const checkQuery = (upload: string, recipe: string | null, trigger: string | null) =>
  queryOptions({
    queryKey: ["dataset-check", upload, recipe, trigger],
    queryFn: () =>
      answer(api.POST("/api/datasets/{upload}/check", { params: { path: { upload } }, body: { recipe, trigger } })),
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
  });
