/** The documents of the API under short names. `schema.ts` is made from the API's own description by `make page`. */
import type { components } from "~/api/schema";

type Schemas = components["schemas"];

export type Account = Schemas["AccountDocument"];
export type Analysis = Schemas["AnalysisDocument"];
export type Artifact = Schemas["ArtifactDocument"];
export type AuditEntry = Schemas["AuditEntryDocument"];
export type Check = Schemas["CheckDocument"];
export type Checkpoint = Schemas["CheckpointDocument"];
export type ComparedJob = Schemas["ComparedJobDocument"];
export type Comparison = Schemas["ComparisonDocument"];
export type CreatedToken = Schemas["CreatedTokenDocument"];
export type Delivery = Schemas["DeliveryDocument"];
export type Evidence = Schemas["EvidenceDocument"];
export type Job = Schemas["JobDocument"];
export type JobEvent = Schemas["EventDocument"];
export type LedgerEntry = Schemas["EntryDocument"];
export type ListedUser = Schemas["ListedUserDocument"];
export type LogError = Schemas["LogErrorDocument"];
export type Machine = Schemas["MachineDocument"];
export type Message = Schemas["NoteDocument"];
export type Model = Schemas["ModelDocument"];
export type PaidLine = Schemas["PaidLineDocument"];
export type Reading = Schemas["ReadingDocument"];
export type Recommendation = Schemas["RecommendationDocument"];
export type Series = Schemas["SeriesDocument"];
export type Server = Schemas["ServerDocument"];
export type Session = Schemas["SessionDocument"];
export type SignInLink = Schemas["SignInLinkDocument"];
export type Terms = Schemas["TermsDocument"];
export type TimelinePoint = Schemas["TimelinePointDocument"];
export type Token = Schemas["TokenDocument"];
export type User = Schemas["UserDocument"];
export type UserChanges = Schemas["ChangesDocument"];

/** A measured number as it comes over the wire: JSON has no word for what is not finite. */
export type Measured = number | "NaN" | "Infinity" | "-Infinity" | null | undefined;
