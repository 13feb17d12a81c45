// Types that several modules of the page share. Those of the server's answers come from `api.d.ts`.
import type { ComponentChildren, VNode } from "/static/vendor/preact-11.2.0/preact.js";
import type { LongText } from "../app/parts/long_text.js";
import type { Store } from "../app/ui.js";
import type { Answers, Bodies, Payloads, RouteOf } from "./api.d.ts";

export type Child = ComponentChildren;

/** What a handler in a template gets. Fields are the only targets whose value handlers read. */
export type HandlerEvent = Event &
  KeyboardEvent &
  MouseEvent &
  DragEvent &
  ClipboardEvent & { target: HTMLInputElement };

export type TemplateValue =
  | ((event: HandlerEvent) => unknown)
  | object
  | string
  | number
  | bigint
  | boolean
  | null
  | undefined;

export type Html = (strings: TemplateStringsArray, ...values: TemplateValue[]) => VNode;

/** What the server answers to a method at an address. */
export type Answer<M extends string, A extends string> = `${M} ${RouteOf<A>}` extends keyof Answers
  ? Answers[`${M} ${RouteOf<A>}`]
  : unknown;

/** What a request to an address carries. */
export type RequestBody<
  M extends string,
  A extends string,
> = `${M} ${RouteOf<A>}` extends keyof Bodies ? Bodies[`${M} ${RouteOf<A>}`] : object;

export type SessionPath<P extends string[]> = P extends []
  ? `/api/sessions/${string}`
  : P extends [infer A extends string]
    ? `/api/sessions/${string}/${A}`
    : P extends [infer A extends string, ...string[]]
      ? `/api/sessions/${string}/${A}/${string}`
      : never;

export type Query = Record<string, string | number | boolean | null | undefined>;

/** An error as views show it. */
export interface Failure {
  message: string;
  hint?: string;
}

export interface Route {
  view: string;
  parts: string[];
  query: URLSearchParams;
  path: string;
}

/** A command with or without keys. `run` returns false when the key was not for it. */
export interface Binding {
  keys?: string;
  label: string;
  group?: string;
  icon?: string;
  typing?: boolean;
  hidden?: boolean;
  inDialogs?: boolean;
  run: (event: Event) => unknown;
}

export interface View {
  name: string;
  label: string;
  icon: string;
  scope?: string;
  key?: string;
  shared?: boolean;
  /** Of a plugin's page: where its manifest wants it. */
  position?: string;
  load?: () => Promise<ViewModule>;
  draw?: () => VNode;
}

export interface ViewModule {
  default?: (props: { route: Route }) => Child;
  error?: Error;
}

/** A function returned by a hook or a watcher that undoes what it did. */
export type Undo = () => unknown;

export interface Cursor {
  epoch: number;
  seq: number;
}

/** The fields that every event has; `seq` and `epoch` only those of a session's log. */
export interface Envelope {
  ts: number;
  src: string;
  session_id: string;
  root_session_id?: string;
  turn_id?: string;
  epoch: number;
  seq: number;
}

/** Messages of a feed itself. */
export interface FeedPayloads {
  "feed.hello": { head?: number };
  "feed.epoch_changed": { was: number };
  "feed.truncated": { first: number; last: number };
  "feed.partial": { text?: string; reasoning?: string; tools?: Record<string, string> };
  "feed.deleted": object;
}

/** An event as it arrives, told apart by its `type`. */
export type HermesEvent = {
  [T in keyof (Payloads & FeedPayloads)]: { type: T } & Envelope & (Payloads & FeedPayloads)[T];
}[keyof (Payloads & FeedPayloads)];

/** The event of one topic. */
export type EventOf<T extends HermesEvent["type"]> = Extract<HermesEvent, { type: T }>;

export type FeedState = "connecting" | "live" | "waiting" | "closed";

export interface FeedHandlers {
  onEvents: (events: HermesEvent[]) => unknown;
  onState?: (state: FeedState) => unknown;
}

type Json<M extends string, A extends string> = Answer<M, A>;

export type SessionRow = Json<"GET", "/api/sessions">["sessions"][number];
export type SessionDetail = Json<"GET", "/api/sessions/x">;
export type SearchHit = Json<"GET", "/api/search">["hits"][number];
export type Status = Json<"GET", "/api/status">;
export type JobRow = Json<"GET", "/api/schedules">["jobs"][number];
export type JobView = Json<"GET", "/api/schedules/x">;
export type JobRun = JobView["history"][number];
export type PluginRow = Json<"GET", "/api/plugins">["plugins"][number];
export type SettingRow = Json<"GET", "/api/settings">["settings"][number];
export type TerminalInfo = Json<"GET", "/api/terminals">["terminals"][number];
export type ToolInfo = Json<"GET", "/api/tools">["tools"][number];

/** A ref of an element that is drawn whenever it is used. */
export interface Ref<T> {
  current: T;
}

/** An event of a field that is typed into or picked from. */
export type FieldEvent = Event & { target: HTMLInputElement };

export type Usage = NonNullable<Payloads["agent.message.assistant"]["usage"]>;
export type Mode = SessionDetail["approvals"];
export type Delivery = "queue" | "steer" | "interrupt";

/** A picture of a message. `url` is set while it is only in this page. */
export interface Picture {
  source: string;
  media_type: string;
  url?: string;
}

/** A picture that is about to be sent. */
export interface AttachedPicture extends Picture {
  data: string;
  url: string;
  name: string;
}

/** Any other file that goes along with a message. */
export interface AttachedFile {
  name: string;
  data: string;
  bytes: number;
}

/** Attachments of an earlier message, which go along again when it is edited. */
export type EarlierAttachments = Required<
  NonNullable<RequestBody<"POST", "/api/sessions/x/messages">["earlier"]>
>;

/** What is put into the composer from outside. */
export interface Filled {
  text: string;
  images?: AttachedPicture[];
  files?: AttachedFile[];
  recordings?: string[];
  earlier?: EarlierAttachments | null;
}

/** A request for approval, as the feed or the list of open requests has it. */
export type ApprovalRequest = Payloads["agent.approval.requested"];
/** A question; `labels` are its options in the language of the reader. */
export type QuestionAsked = Payloads["agent.question.asked"] & { labels?: string[] };

/** An open request for approval or question of any session. */
export type WaitingRow = {
  session_id: string;
  root_session_id: string;
  title: string;
} & (({ kind: "approval" } & ApprovalRequest) | ({ kind: "question" } & QuestionAsked));

interface TranscriptItem {
  key: string;
  seq: number;
  ts: number;
  turn: string;
  /** The undo that removed it from what the model sees; 0 or absent when it was not undone. */
  undone?: number;
}

export interface UserItem extends TranscriptItem {
  kind: "user";
  text: string;
  images: Picture[];
  /** Files of the recordings in which it was said. */
  recordings: string[];
  delivery: string;
  origin: string;
  /** Whether a turn has begun with it. */
  taken: boolean;
  /** Whether the user took it back before that. */
  withdrawn?: boolean;
}

export interface AssistantItem extends TranscriptItem {
  kind: "assistant";
  text: string;
  reasoning: string;
  finish: string;
  model: string;
  provider: string;
  usage: Usage | null;
}

export interface ToolCall {
  name: string;
  arguments: string;
  status: "planned" | "waiting" | "running" | "done" | "failed" | "unknown";
  output: string;
  text: string;
  started: number;
  ended: number;
}

export interface ToolItem extends TranscriptItem, ToolCall {
  kind: "tool";
  call: string;
  images: Picture[];
  /** The row with the result. */
  result: number;
  approval: (ApprovalRequest & { answer: string; by?: string }) | null;
  question: (QuestionAsked & { answered: boolean; reply?: string | null; by?: string }) | null;
  planned: boolean;
  /** It waits for an answer although the process that asked is gone. */
  orphan: boolean;
}

export interface EndItem extends TranscriptItem {
  kind: "end";
  reason: string;
  detail: string;
  usage: Usage | null;
  seconds: number;
  /** Whether the turn called tools. */
  acted: boolean;
}

export interface NoteItem extends TranscriptItem {
  kind: "note";
  tone: string;
  icon: string;
  text: string;
  detail: string;
  link: string;
  place: string;
}

/** The same under a name that no component has. */
export type TranscriptRow = Item;

export type Item = UserItem | AssistantItem | ToolItem | EndItem | NoteItem;

/** Undone items that are folded into one row. */
export interface UndoneRow {
  key: string;
  seq: number;
  group: Item[];
}

/** Calls that are shown as one row. */
export interface CallGroupRow {
  key: string;
  seq: number;
  group: ToolItem[];
  isCalls: true;
}

/** The reply that is being written. */
export interface LiveReply {
  text: LongText;
  reasoning: LongText;
  tool: string;
  turn?: string;
}

export interface Transcript {
  session: string;
  epoch: number;
  /** The first row that is known; earlier ones can be read. */
  first: number;
  /** The last row. */
  head: number;
  items: Item[];
  live: LiveReply | null;
  /** The running turn. */
  turn: string;
  since: number;
  stepSince: number;
  stopping: boolean;
  title: string;
  cwd: string;
  surface: string;
  kind: string;
  parent: string;
  model: string;
  cost: number;
  /** Calls without a known price. */
  unpriced: number;
  /** Tokens of the last request and its reply. */
  context: number;
  /** The undo that can be redone. */
  redoable: number;
  /** Whether the replay is over. */
  ready: boolean;
  deleted: boolean;
}

/** A message that is being sent, or could not be sent. */
export interface Message {
  key: string;
  text: string;
  images: AttachedPicture[];
  files?: AttachedFile[];
  /** Names of the recordings in which it was said. */
  recordings?: string[];
  earlier?: EarlierAttachments | null;
  delivery: Delivery;
  model: string | null;
  approvals: Mode | null;
  /** The last row known when it was sent: it can only come after that one. Null when unknown. */
  since: number | null;
  state: "sending" | "accepted" | "failed";
  error: string;
  seq: number;
  epoch?: number;
  /** Whether the server may have accepted it although the request failed. */
  unsure?: boolean;
  /** How many pictures it had before the page was reloaded. */
  pictures?: number;
}

/** A place in the transcript to scroll to. */
export interface Goal {
  seq: number;
  isFound?: boolean;
}

/** What slash commands and the composer can do with the chat that is shown. */
export interface ChatActions {
  id: string;
  send: (
    text: string,
    delivery?: Delivery,
    images?: AttachedPicture[],
    files?: AttachedFile[],
    recordings?: string[],
    earlier?: EarlierAttachments | null,
  ) => unknown;
  search: (text: string) => void;
  stop: () => unknown;
  help: () => void;
  lastSaid: () => string;
  model: (name: string) => unknown;
  approvals: (name: string) => unknown;
  diff?: (turn: string) => void;
  files?: () => void;
  context?: () => void;
  /** Shows what a command says: Markdown in a dialog. A new chat then goes on as the session `next`. */
  show?: (title: string, text: string, next?: string) => void;
  /** Lists what works in the background. */
  backgroundWork: () => void;
  /** Makes a session of a new chat. Resolves to its id, or to "" after an error that was shown. */
  begin?: () => Promise<string>;
  /** Puts text into the composer. */
  fill?: (text: string) => void;
  /** The model that was chosen in this browser. */
  chosenModel?: string | null;
  beginning?: () => void;
  /** The conversation, once there is one. */
  transcript?: Store<Transcript>;
}

/** A session that works for another one. */
export interface ChildStatus {
  id: string;
  parent: string;
  kind: string;
  state: string;
  doing: string;
  title: string;
  cost_usd: number;
  seconds: number;
}

/** What works in the background. */
export interface AgentOverview {
  children: ChildStatus[];
}

/** What the items of a transcript can do. */
export interface ItemContext {
  session: string;
  cwd: string;
  retry: () => unknown;
  diff: (turn: string) => void;
  /** Continues in a copy up to an item; with a message of the person, to edit it. */
  branch: (item: Item) => unknown;
  /** Shows what a turn cost, and why. */
  cost: (turn: string) => void;
  /** Takes back a queued message. */
  withdraw: (item: UserItem) => unknown;
  /** Takes back a queued message to edit it. */
  edit: (item: UserItem) => unknown;
}

export interface OpenQuestion {
  session: string;
  call: string;
  text: string;
}

export type SkillRow = Json<"GET", "/api/skills">["skills"][number];
export type SkillChange = RequestBody<"PATCH", "/api/skills/x">;
export type MemoryFile = Json<"GET", "/api/memory">["files"][number];
export type MemoryChange = RequestBody<"POST", "/api/memory">;
export type HistoryEntry = Json<"GET", "/api/learning/history">["entries"][number];
export type Origin = HistoryEntry["origin"];
export type PluginFile = Json<"GET", "/api/plugins/x">["files"][number];
export type UsageRow = Json<"GET", "/api/usage">["usage"][number];
export type ScheduleMeaning = Json<"POST", "/api/schedules/preview">;

/** A change that waits for approval, or was decided on. */
export interface ProposalRow {
  id: string;
  change: ProposedChange;
  origin: Origin;
  why: string;
  diff: string;
  created: number;
  status: "pending" | "approved" | "rejected";
  hash: string;
}

export type ProposedChange =
  | { type: "memory"; edits: { action: string; file: string }[] }
  | {
      type: "skill";
      name: string;
      retire?: boolean;
      files: { path: string; before?: string | null }[];
    };

export interface Rule {
  program?: string;
  arguments?: string[];
  reach?: string;
  path?: string;
  tool?: string;
  host?: string;
}

/** The user's policy file. */
export interface PolicyRules {
  forbid: Rule[];
  ask: Rule[];
  allow: Rule[];
  network: Rule[];
  remembered: string[];
}

export interface FindingRow {
  check: string;
  status: "ok" | "warn" | "fail";
  message: string;
  to_do: string;
}

export interface McpServer {
  name: string;
  state: string;
  tools: number;
  detail: string;
  hint: string;
  changed: string[];
  where: string;
  login: string;
}

/** The plugins that the page knows; `list` is null before the first answer. */
export interface KnownPlugins {
  list: PluginRow[] | null;
  error: Failure | null;
}

/** One step of a session's timeline. */
export interface Step {
  index: number;
  seq: number;
  ts: number;
  kind: string;
  title: string;
  text: string;
  event: HermesEvent;
  usage: Usage | null;
  /** How many turns had begun. */
  turn: number;
  /** Spent up to here. */
  cost: number;
  tokens: number;
  /** The start of the tool call that this step ends. */
  from: Step | null;
}

export interface Turn {
  id: string | undefined;
  from: number;
  to: number | null;
  reason: string;
}

/** An event in the inspector's buffer. `preview` and `text` are made when they are first needed. */
export interface BufferedEvent {
  number: number;
  event: HermesEvent;
  size: number;
  preview?: string;
  text?: string;
}

/** The search and the filters of the list of sessions, as they are in the address. */
export interface SessionQuery {
  q: string;
  surface: string;
  state: string;
  cost: string;
  date: string;
}

/** The sum of several rows of usage. */
export type UsageTotal = Pick<
  UsageRow,
  | "calls"
  | "input_tokens"
  | "output_tokens"
  | "cache_read_tokens"
  | "reasoning_tokens"
  | "cost_usd"
  | "unpriced_calls"
>;

/** What a plugin's module gets when it is mounted. */
export interface PluginTools {
  api: typeof import("../app/api.js").api;
  events: {
    subscribe: (
      pattern: string,
      callback: (event: never) => void,
      onLive?: () => void,
    ) => () => void;
  };
  html: Html;
  ui: typeof import("../app/ui.js");
  kind: string;
}

/** A form that is being sent. */
export interface Saving {
  busy: boolean;
  error: Failure | null;
}

export type BoardColumns = Json<"GET", "/api/commands/kanban.columns">;
export type BoardColumn = BoardColumns["columns"][number];
export type ListedCard = BoardColumn["cards"][number];
export type CardStatus = ListedCard["status"];
export type CardDetails = Json<"GET", "/api/commands/kanban.show">;
export type CardRunReport = CardDetails["runs"][number];
export type CardHistoryEntry = CardDetails["history"][number];

/** Which cards of a board are shown. */
export interface CardFilter {
  query: string;
  assignee: string;
  label: string;
  archived: boolean;
}

/** A board as the page has loaded it, and what can be done with it. */
export interface LoadedBoard {
  value: BoardColumns | null;
  error: Failure | null;
  again: () => Promise<void>;
  more: (status: CardStatus) => Promise<void>;
  place: (card: ListedCard, status: CardStatus) => void;
}

/** What `app/service_worker.js` uses of its global scope; TypeScript's `dom` and `webworker` can't be used together. */
export interface WorkerScope {
  addEventListener(name: string, listener: (event: WorkerEvent) => void): void;
  skipWaiting(): Promise<void>;
  registration: ServiceWorkerRegistration;
  clients: {
    claim(): Promise<void>;
    matchAll(options: { type: "window" }): Promise<OpenPage[]>;
    openWindow(address: string): Promise<OpenPage | null>;
  };
}

export interface OpenPage {
  focused: boolean;
  focus(): Promise<OpenPage>;
  navigate(address: string): Promise<OpenPage | null>;
}

export interface WorkerEvent {
  request: Request;
  notification: Notification;
  respondWith(answer: Promise<Response>): void;
  waitUntil(work: Promise<unknown>): void;
}
