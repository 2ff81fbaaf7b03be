// Types of "wisp/device.js": learning, in a worker.
import type { Items, ModelInfo, Recommendation, RecommendOptions } from "./types.js";
export { WispError } from "./types.js";
export type { Item, Items, ModelInfo, Recommendation, RecommendOptions } from "./types.js";

export type Unit = "user" | "session" | "day" | "interaction";
export interface Event { user: string; item: string; /** Milliseconds since 1970. */ time: number }

/** The first comes at once, with 0 of 0 steps: then the noise is chosen, which takes seconds. */
export interface Progress {
  step: number; numSteps: number;
  /** Local only: not private. */
  loss: number;
  /** Spent by this run so far; NaN while unknown. */
  epsilon: number;
}

export interface Running {
  onProgress?(progress: Progress): void;
  /** Aborting ends the worker and starts a new one: what was charged stays charged. */
  signal?: AbortSignal;
}

export interface PersonaliseOptions extends Running {
  /** Names of files in the store. */
  model: string; output: string;
  epsilon: number; delta: number;
  /** A number of records that anybody may know. */
  numRecordsPublic: number;
  unit: Unit;
  /** Above 0: an adapter of this rank trains beside the model, and `output` is the adapter. */
  adapterRank?: number;
  /** The adapter that trains further. */
  adapter?: string;
  /** Limit over everything ever done with this data. */
  budgetEpsilon?: number;
  sessionGap?: number; expectedBatch?: number; epochs?: number; learningRate?: number; clippingNorm?: number;
  plannedRuns?: number; checkpointEvery?: number; dataset?: string; otherData?: boolean; unchargedTuning?: string;
  /** Units of the events' times in a second; 1000 unless given, as appendEvents takes milliseconds. */
  timesPerSecond?: number;
}

export interface PersonaliseResult {
  numSteps: number; plannedSteps: number; resumedFrom: number; epsilon: number; noiseMultiplier: number;
  checkpointFailed: number; onDevice: number;
  /** The following fields are counted on the log. Local only: not private. */
  numRecords: number; recordsTooShort: number; gradientsDropped: number; numEvents: number; unknownEvents: number;
  unknownItems: number; badRows: number;
}

export interface PlanOptions {
  model: string;
  /** The file that runs write: a plan is refused if the ledger is gone and runs trained beside this file. */
  output?: string;
  /** Replace another plan that nothing was charged under. */
  replace?: boolean;
  epsilon: number; delta: number; numRecordsPublic: number; runs: number; unit: Unit;
  /** Number of records when the plan begins; runs share the steps in proportion. 0: all of them. */
  numRecordsAtStart?: number;
  /** Seconds between runs, of which a run waits for half. 0: it never waits. */
  every?: number;
  evaluation?: "private" | "local" | "none";
  sessionGap?: number; evaluations?: number; stepsPerRun?: number; expectedBatch?: number;
  learningRate?: number;
  typicalEvents?: number; dryRun?: boolean; measure?: boolean; dataset?: string; otherData?: boolean;
  timesPerSecond?: number; trainsUntil?: number;
}

/** Options that may change in a plan that has begun. */
export type PlanChange = { model: string } &
  Partial<Pick<PlanOptions, "runs" | "stepsPerRun" | "expectedBatch" | "numRecordsPublic" | "learningRate" | "dryRun">>;

export interface PlannedRunOptions extends Running { model: string; output: string; maxBytes?: number; early?: boolean }

export interface PlannedRunResult {
  /** The model that is served after this run, and whether it changed. With a plan's evaluation "local" these two and
   * `verdict` are not private: local only. */
  served: number; changed: number; verdict: number;
  evaluated: number; onDevice: number; steps: number;
  /** Steps of the candidate over all runs; from 0 again after a lost checkpoint, a rebase, or a change of the plan that
   * costs noise, although what was learned stays. */
  stepsOfModel: number;
  runsLeft: number; stepsLeft: number; evaluationsLeft: number;
  /** The following fields are counted on the log. Local only: not private. */
  numEvents: number; unknownEvents: number; unknownItems: number; badRows: number; numRecords: number;
}

export interface FleetOptions extends Pick<Running, "signal"> {
  /** Names of files in the store. The policy names the server, in the page's own origin, and no operator's key. */
  policy: string; model: string;
  /** The file for a model of the fleet, if it is not worse here; not kept unless given. */
  output?: string;
  /** 0 unless given: until nothing is there to do now. */
  seconds?: number;
  unit?: Unit; sessionGap?: number; timesPerSecond?: number; dataset?: string;
  /** The mean time between two questions for work; 30 unless given. */
  askSeconds?: number;
}

export interface FleetResult {
  /** Answers that the server has got in this call. */
  answers: number;
  participations: number; mostParticipations: number;
  /** Call again after so many seconds. */
  waitSeconds: number;
}

export interface Budget {
  epsilonStated: number; delta: number; epsilonLimit: number; hasPlan: number; runsLeft: number; stepsLeft: number;
  evaluationsLeft: number; successionReleasesLeft: number; biasWeightReleasesLeft: number;
  /** What was charged so far, while epsilonStated is that of a plan. It holds only if nobody stopped because of what
   *  training showed. NaN: epsilonStated is what was charged. */
  epsilonCharged: number;
}

/** A message of a run. */
export interface Sentence { level: "info" | "warning"; text: string }

export interface PruneOptions {
  unit: Unit;
  /** Delete events before this time, in milliseconds. */
  before?: number;
  newestPerUser?: number; sessionGap?: number; timesPerSecond?: number;
}

type Who = { user: string; history?: undefined } | { history: Items; user?: undefined };

export type RecommendQuery = RecommendOptions & Who & { model: string; adapter?: string };

export type BatchQuery = RecommendOptions & { model: string; adapter?: string } & (
  { users: Iterable<string>; histories?: undefined } | { histories: Iterable<Items>; users?: undefined });

/** How items are sampled, and what it may cost. One of lambda, clip, epsilonPerSample, epsilon is given. */
export type PrivateQuery = RecommendOptions & Who & {
  model: string;
  /** The public model, as shipped: for samples anchored at it. */
  base?: string;
  decoding?: "default" | "mixed" | "anchored";
  lambda?: number; clip?: number; epsilonPerSample?: number;
  /** For `plannedSamples` together, at `delta`. */
  epsilon?: number; delta?: number; plannedSamples?: number;
  budgetEpsilon?: number; numRecordsPublic?: number; allowLargeDelta?: boolean; temperature?: number; topK?: number;
  topP?: number; samplesPerCharge?: number; otherData?: boolean; unchargedTuning?: string;
  unit?: Unit;
  /** Data sets in the models' provenance that are public, on the page's word. */
  publicDatasets?: readonly string[];
};

/** An item to add: `like` is the key of a similar one. */
export interface NewItem { key: string; name?: string; like?: string }

/** A folder of this site's storage, and the worker that uses it. A promise is rejected with a WispError. */
export class Device {
  /** `worker` returns a worker that runs worker.js, where a page has its own way to start one. */
  static open(name?: string, options?: { onSentence?(sentence: Sentence): void; worker?(): Worker }): Promise<Device>;
  /** Deletes everything that a closed device has stored, including its ledgers and its key in a fleet. */
  static delete(name?: string): Promise<void>;
  writeFile(name: string, bytes: ArrayBuffer | ArrayBufferView): Promise<void>;
  readFile(name: string): Promise<Uint8Array>;
  removeFile(name: string): Promise<void>;
  listFiles(): Promise<string[]>;
  /** Appends all events or none; they are on disk when the promise resolves. */
  appendEvents(events: readonly Event[]): Promise<void>;
  /** Local only: not private. */
  countEvents(): Promise<{
    events: number; users: number; items: number; oldest: number; newest: number;
    unreadable: number;  // events whose user, item or time training cannot read
  }>;
  history(query: { model: string; user: string; limit?: number }): Promise<number[]>;
  eraseUser(user: string): Promise<number>;
  pruneLog(options: PruneOptions): Promise<number>;
  recommend(query: RecommendQuery): Promise<Recommendation[]>;
  recommendBatch(query: BatchQuery): Promise<Recommendation[][]>;
  /** Samples items, and charges the ledger before each, for a model that learned without a guarantee. `free`: the model
   * has one, and nothing was charged. */
  recommendPrivately(query: PrivateQuery): Promise<{
    free: boolean; items: { item: number; key: string; name: string }[];
  }>;
  describeModel(name: string): Promise<ModelInfo & { items: { item: number; key: string; name: string }[] }>;
  /** Call it at each visit: the first call makes the plan, later ones find it (`wasThere` is 1). */
  plan(options: PlanOptions): Promise<Record<string, number>>;
  planChange(options: PlanChange): Promise<Record<string, number>>;
  personalise(options: PersonaliseOptions): Promise<PersonaliseResult>;
  runPlanned(options: PlannedRunOptions): Promise<PlannedRunResult>;
  /** Local only: not private. */
  evaluate(model: string): Promise<{ ndcgAt10: number; hitAt10: number; numUsers: number }>;
  /** `fleet`: of the ledger of the fleet. */
  budget(options: { delta: number; fleet?: boolean }): Promise<Budget>;
  statement(options: { delta: number; format?: "text" | "json"; fleet?: boolean }): Promise<string>;
  /** Does what the fleet's server asks and the policy allows. An error of kind "Io": call again later, each time later
   * than before. */
  workInFleet(options: FleetOptions): Promise<FleetResult>;
  /** Refused if what was learned would be lost; `startOver` gives it up. */
  rebase(options: { from: string; to: string; output: string; startOver?: boolean }): Promise<Record<string, number>>;
  rebaseAdapter(options: { from: string; adapter: string; to: string; output: string }): Promise<void>;
  /** Writes a base with more items, which no list holds before a run has trained them. */
  addItems(options: { model: string; items: readonly NewItem[]; output: string }): Promise<void>;
  /** Writes a base that never recommends these items; `restore`: does again. */
  retireItems(options: { model: string; keys: readonly string[]; restore?: boolean; output: string }): Promise<void>;
  version(): Promise<string>;
  /** Ends the running call, as if the page had been closed. */
  cancel(): Promise<void>;
  close(): Promise<void>;
}
