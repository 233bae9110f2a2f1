/** What comes over the wire, as GATEWAYS.md G9 has it. */

import type { Evidence } from './acts.js';
import type { Signer } from './sign.js';

/** The newest entry of a session: its number, from 0, and its hash. */
export interface Head {
  n: number;
  hash: string;
}

/** An entry of a transcript: an act as it was delivered. */
export interface Entry {
  messageId: string;
  sequenceNumber: number;
  performative: string;
  sender: { agentId: string };
  content: { body: Record<string, unknown> };
  integrity: { receipt?: { state?: string } } & Record<string, unknown>;
}

/** An act that you may say now. `fill` names the members of `body` that it leaves to you. */
export interface Move {
  performative: string;
  referenceId?: string;
  recipient?: string;
  body: Record<string, unknown>;
  fill: string[];
  says: string;
}

export interface OfferView {
  id: string;
  by: string;
  mine: boolean;
  about?: string;
  terms?: Record<string, unknown>;
  text: string;
  changes?: { path: string; from?: unknown; to?: unknown }[];
  status: string;
  expires?: string;
  binding: boolean;
  truncated?: boolean;
}

export interface OpenView {
  kind: string;
  id: string;
  by: string;
  for: string[];
  due?: string;
  text: string;
  body?: Record<string, unknown>;
  truncated?: boolean;
}

export interface ObligationView {
  commitmentId: string;
  obligation: string;
  party: string;
  to: string[];
  action: string;
  status: string;
  deadline?: string;
  quantity?: number;
  unit?: string;
  amount?: { value: string | number; currency: string };
  verificationMethod?: string;
  remains?: number;
  accepted?: number;
  breaches?: number;
  delivery?: { referenceId: string; by: string; quantity?: number; evidence?: Evidence[]; sequenceNumber: number; until: string; paused?: boolean };
}

export interface DisputeView {
  disputeId: string;
  by: string;
  subject: string;
  entry: number;
  commitmentId?: string;
  obligation?: string;
  ground: string;
  claim: string;
  remedy?: string;
  severity: number;
  evidence?: Evidence[];
  sequenceNumber: number;
  replies?: { referenceId: string; by: string; position: string; remedy?: string; sequenceNumber: number }[];
  status: string;
  decidedBy?: number;
}

/** A session as one side sees it. */
export interface Snapshot {
  sessionId: string;
  purpose?: string;
  mode: string;
  state: string;
  head: Head;
  you: { agentId?: string; role: string; authority?: string; onBehalfOf?: string };
  others: { agentId: string; role: string }[];
  offers: OfferView[];
  agreed?: OfferView;
  obligations?: ObligationView[];
  disputes?: DisputeView[];
  open: OpenView[];
  moves: Move[];
  waiting?: { for: string[]; yours: boolean; deadline?: string };
  outcome?: string;
  private?: unknown;
  news?: Entry[];
  cursor: number;
}

/** An act before it has an envelope. */
export interface Draft {
  performative: string;
  body: Record<string, unknown>;
  recipient?: string;
  /** What opens the members that `body` seals, with which it is sent beside the envelope. */
  opens?: Record<string, { salt: string; value: unknown }>;
}

/**
 * A way to the broker. Each method answers once: it throws a Refusal or NoAnswer, and repeats nothing. What has a `trace`,
 * a traceparent, joins it.
 */
export interface Transport {
  /** What ids derive from: the agent's URI, or what stands for it. */
  readonly identity: string;
  /** What signs for the agent; undefined for a hosted one. */
  readonly signer?: Signer | undefined;
  /** Calls a verb of the api (PROTOCOL.md section 9). */
  call(verb: string, request: Record<string, unknown>, signal?: AbortSignal, trace?: string): Promise<unknown>;
  /** Says an act on the entry that is the head, or without one the first act of a session. */
  say(session: string, draft: Draft, head: Head | undefined, messageId: string, trace?: string): Promise<unknown>;
  /** Ends it. What was asked is not answered any more. */
  close(): Promise<void>;
}
