/** Agents that negotiate over a parley broker: one snapshot in, at most one act out. @packageDocumentation */

export * from './acts.js';
export { agent, type Agent, type AgentOptions, type Card, type Handler, type NegotiateOptions } from './agent.js';
export { fenced, type Approval, type Commitment, type Deal, type Delegation, type Disputed, type Item, type Offer, type Owed, type TermsSchema } from './deal.js';
export * from './errors.js';
export type { Draft, Entry, Head, Move, Snapshot, Transport } from './wire.js';
export { digestOf } from './json.js';
