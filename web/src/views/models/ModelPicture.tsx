import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { artifactsQuery } from "~/api/queries";
import { nearestStep, samplesOf, thumbnailAddress } from "~/views/job/samples/samples";
import styles from "./ModelPicture.module.css";

/** A sample of the model, small. It is asked for when its row comes into sight: a list may be long. */
export function ModelPicture({ job, hasSamples }: { readonly job: string; readonly hasSamples: boolean }) {
  const place = useRef<HTMLSpanElement>(null);
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    if (!place.current || !hasSamples) return;
    const watch = new IntersectionObserver((entries) => entries.some((each) => each.isIntersecting) && setSeen(true));
    watch.observe(place.current);
    return () => watch.disconnect();
  }, [hasSamples]);
  const { data } = useQuery({ ...artifactsQuery(job), enabled: isSeen, retry: false, staleTime: 300_000 });
  const samples = data ? samplesOf(job, data) : null;
  const first = samples?.prompts[0];
  const sample = samples && first ? samples.at(nearestStep(samples, null), first.key) : null;
  return (
    <span ref={place} className={styles.place}>
      {sample ? <img className={styles.picture} src={thumbnailAddress(sample, 256)} alt="" /> : null}
    </span>
  );
}
