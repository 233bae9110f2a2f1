/** What comes over the wire, as GATEWAYS.md G9 has it. */

import type { Signer } from './sign.js';

export interface Head {
  n: number;
  hash: string;
}

export interface Entry {
  messageId: string;
  sequenceNumber: number;
  performative: string;
  sender: { agentId: string };
  content: { body: Record<string, unknown> };
  integrity: { receipt?: { state?: string } } & Record<string, unknown>;
}

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
}

export interface OpenView {
  kind: string;
  id: string;
  by: string;
  for: string[];
  due?: string;
  text: string;
}

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
}

/** A way to the broker. Each method answers once: it throws a Refusal or NoAnswer, and repeats nothing. */
export interface Transport {
  /** What ids derive from: the agent's URI, or what stands for it. */
  readonly identity: string;
  /** What signs for the agent; undefined for a hosted one. */
  readonly signer?: Signer | undefined;
  call(verb: string, request: Record<string, unknown>, signal?: AbortSignal): Promise<unknown>;
  say(session: string, draft: Draft, head: Head | undefined, messageId: string): Promise<unknown>;
  close(): Promise<void>;
}
