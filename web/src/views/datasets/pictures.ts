/** The pictures of an upload: of this computer while it is sent, else small ones that the server makes. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { answer, api } from "~/api/client";
import { isCaption, isPicture, type Picture, stemOf } from "./Pictures";
import type { FileState } from "./upload/uploader";

const AT_A_TIME = 192;

/** Object addresses by file: a file keeps its address, so that pictures do not flicker. */
const addresses = new WeakMap<File, string>();

function addressOf(file: File): string {
  let address = addresses.get(file);
  if (address === undefined) {
    address = URL.createObjectURL(file);
    addresses.set(file, address);
  }
  return address;
}

export function useLocalPictures(files: readonly FileState[]): readonly Picture[] {
  const [texts, setTexts] = useState<ReadonlyMap<string, string>>(new Map());
  const count = files.length;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the list is new with every byte; its files are not
  const captions = useMemo(() => files.filter((file) => isCaption(file.path)), [count]);
  useEffect(() => {
    let isOver = false;
    void Promise.all(captions.map(async ({ path, local }) => [stemOf(path), (await local.file.text()).trim()] as const))
      .then((read) => {
        if (!isOver) setTexts(new Map(read));
      })
      // The file was moved meanwhile; sending it then reports that.
      .catch(() => undefined);
    return () => {
      isOver = true;
    };
  }, [captions]);
  return useMemo(
    () =>
      files
        .filter((file) => isPicture(file.path) && file.state !== "refused")
        .map((file) => ({
          path: file.path,
          source: addressOf(file.local.file),
          caption: captionOf(texts, captions, file.path),
        })),
    [files, texts, captions],
  );
}

function captionOf(texts: ReadonlyMap<string, string>, captions: readonly FileState[], path: string) {
  const stem = stemOf(path);
  if (texts.has(stem)) return texts.get(stem);
  return captions.some((caption) => stemOf(caption.path) === stem) ? undefined : null;
}

export function useStoredPictures(upload: string, isWanted: boolean) {
  const query = useInfiniteQuery({
    queryKey: ["datasets", upload, "pictures"],
    queryFn: ({ pageParam }) =>
      answer(
        api.GET("/api/datasets/{upload}/pictures", {
          params: { path: { upload }, query: { limit: AT_A_TIME, ...(pageParam ? { after: pageParam } : {}) } },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next ?? undefined,
    enabled: isWanted,
  });
  const pictures = useMemo<readonly Picture[]>(
    () =>
      (query.data?.pages ?? []).flatMap((page) =>
        page.items.map((one) => ({
          path: one.path,
          caption: one.caption,
          source: `/api/datasets/${upload}/thumbnails/${one.path.split("/").map(encodeURIComponent).join("/")}?width=256`,
        })),
      ),
    [query.data, upload],
  );
  return { pictures, more: query.hasNextPage ? () => void query.fetchNextPage() : undefined, error: query.error };
}
