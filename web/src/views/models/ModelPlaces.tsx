import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { answer, api } from "~/api/client";
import type { Model, Place } from "~/api/documents";
import { Button } from "~/design/Button";
import { CopyText } from "~/design/CopyText";
import { Confirm } from "~/design/Dialog";
import { Badge } from "~/design/StateMark";
import { useSay } from "~/design/Toasts";
import { When } from "~/design/When";
import { bytes } from "~/text/format";
import styles from "./ModelPlaces.module.css";
import { placeWord, registrationOf, trainedOf } from "./models";
import { modelQuery } from "./queries";

/** Where the model lies, what kept it from the other places, and the way to the Hub. */
export function ModelPlaces({ model, mayPublish }: { readonly model: Model; readonly mayPublish: boolean }) {
  const places = model.places ?? [];
  const { notPublished } = trainedOf(model);
  const isOnHub = places.some((place) => place.kind === "hub");
  const registered = registrationOf(model);
  return (
    <section aria-labelledby="model-places">
      <h2 id="model-places">Where it is</h2>
      <ul className={styles.places}>
        {places.map((place) => (
          <PlaceRow key={place.kind} place={place} />
        ))}
        {places.length === 0 ? <li>Nowhere any more: its files were removed.</li> : null}
        {Object.entries(notPublished).map(([what, why]) => (
          <li key={what} className={styles.place}>
            <Badge tone="bad">✕ {placeWord(what)}</Badge>
            <span>{why}</span>
          </li>
        ))}
        <li className={styles.place}>
          {registered ? (
            <Badge tone={registered.tone}>
              {registered.mark} ComfyDeploy: {registered.word.toLowerCase()}
            </Badge>
          ) : (
            <Badge tone="waiting">○ ComfyDeploy: not registered</Badge>
          )}
          <span className="quiet">
            {model.registration.note ?? ""}
            {model.registration.due_at ? (
              <>
                {" "}
                tried next <When at={model.registration.due_at} />
              </>
            ) : null}
          </span>
        </li>
      </ul>
      {isOnHub ? null : <Publish model={model} mayPublish={mayPublish} />}
    </section>
  );
}

function PlaceRow({ place }: { readonly place: Place }) {
  return (
    <li className={styles.place}>
      <Badge tone="good">✓ {placeWord(place.kind)}</Badge>
      <CopyText text={place.address} what={`address in the ${placeWord(place.kind).toLowerCase()}`} />
      <span className={styles.about}>
        {place.kind === "hub" ? (place.public ? "public: everyone may download it" : "private") : null}
        {place.link ? (
          <a href={place.link} target="_blank" rel="noreferrer">
            Open its page<span className="visually-hidden"> in a new tab</span>
          </a>
        ) : null}
      </span>
    </li>
  );
}

function Publish({ model, mayPublish }: { readonly model: Model; readonly mayPublish: boolean }) {
  const [isAsked, setAsked] = useState(false);
  const say = useSay();
  const queries = useQueryClient();
  const publish = useMutation({
    mutationFn: () => answer(api.POST("/api/models/{model}/publish", { params: { path: { model: model.slug } } })),
    onSuccess: (published) => {
      queries.setQueryData(modelQuery(model.slug).queryKey, published);
      void queries.invalidateQueries({ queryKey: ["models"] });
      setAsked(false);
      say(`${model.name} is on the Hub`);
    },
  });
  if (!mayPublish) return <p className="quiet">Publishing needs the right to train.</p>;
  return (
    <>
      <Button onClick={() => setAsked(true)}>Publish to the Hub</Button>
      <Confirm
        open={isAsked}
        onClose={() => {
          if (!publish.isPending) setAsked(false);
          publish.reset();
        }}
        title={`Publish ${model.name} to the Hub?`}
        action="Publish"
        busy={publish.isPending}
        problem={publish.error}
        onConfirm={() => publish.mutate()}
      >
        <p>
          The weights ({bytes(model.size)}), the samples and a card with the trigger word and the parameters are
          uploaded to the account of the settings. Who may see them is what the settings say; the Hub keeps them until
          you delete them there.
        </p>
        {publish.isPending ? <p role="status">Uploading: how long it takes depends on your connection.</p> : null}
      </Confirm>
    </>
  );
}
