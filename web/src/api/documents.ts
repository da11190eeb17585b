/** The documents of the API under short names. `schema.ts` is made from the API's own description by `make page`. */
import type { components } from "~/api/schema";

type Schemas = components["schemas"];

export type Account = Schemas["AccountDocument"];
export type Analysis = Schemas["AnalysisDocument"];
export type AppliedAdvice = Schemas["AppliedAdviceDocument"];
export type Artifact = Schemas["ArtifactDocument"];
export type AuditEntry = Schemas["AuditEntryDocument"];
export type Check = Schemas["CheckDocument"];
export type Checkpoint = Schemas["CheckpointDocument"];
export type ComparedJob = Schemas["ComparedJobDocument"];
export type Comparison = Schemas["ComparisonDocument"];
export type CreatedToken = Schemas["CreatedTokenDocument"];
export type DatasetProblem = Schemas["DatasetProblemDocument"];
export type DatasetReport = Schemas["DatasetReportDocument"];
export type Delivery = Schemas["DeliveryDocument"];
export type Estimate = Schemas["EstimateDocument"];
export type EstimateBody = Schemas["EstimateBody"];
export type Evidence = Schemas["EvidenceDocument"];
export type Job = Schemas["JobDocument"];
export type JobEvent = Schemas["EventDocument"];
export type JobFile = Schemas["JobFile"];
export type LedgerEntry = Schemas["EntryDocument"];
export type ListedUser = Schemas["ListedUserDocument"];
export type LogError = Schemas["LogErrorDocument"];
export type Machine = Schemas["MachineDocument"];
export type Message = Schemas["NoteDocument"];
export type Model = Schemas["ModelDocument"];
export type Offer = Schemas["RankedOfferDocument"];
export type PaidLine = Schemas["PaidLineDocument"];
export type Place = Schemas["PlaceDocument"];
export type Proposal = Schemas["ProposalDocument"];
export type Ranking = Schemas["RankingDocument"];
export type Reading = Schemas["ReadingDocument"];
export type Recipe = Schemas["Recipe"];
export type RecipeProblem = Schemas["RecipeProblemDocument"];
export type Recommendation = Schemas["RecommendationDocument"];
export type RetryBody = Schemas["RetryBody"];
export type Series = Schemas["SeriesDocument"];
export type Server = Schemas["ServerDocument"];
export type Session = Schemas["SessionDocument"];
export type SignInLink = Schemas["SignInLinkDocument"];
export type SkippedAdvice = Schemas["SkippedAdviceDocument"];
export type Terms = Schemas["TermsDocument"];
export type TimelinePoint = Schemas["TimelinePointDocument"];
export type Token = Schemas["TokenDocument"];
export type Upload = Schemas["UploadDocument"];
export type UploadedFile = Schemas["UploadedFileDocument"];
export type UploadedPicture = Schemas["UploadedPictureDocument"];
export type User = Schemas["UserDocument"];
export type UserChanges = Schemas["ChangesDocument"];
export type Metrics = Schemas["MetricsDocument"];
export type Rows = Schemas["RowsDocument"];

/** A measured number as it comes over the wire: JSON has no word for what is not finite. */
export type Measured = number | "NaN" | "Infinity" | "-Infinity" | null | undefined;
