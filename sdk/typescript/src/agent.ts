/**
 * An agent: handlers that decide, and the loop that keeps their decisions right under failure. A handler is a
 * reducer: one deal in, at most one act out. The act is tied to the head of the transcript that it was decided
 * on; if the session has gone on meanwhile, the handler decides again.
 */

import { propose, withdraw, type Act, type Decision, type Terms } from './acts.js';
import { bound } from './binding.js';
import { Deal, type Delegation, type TermsSchema } from './deal.js';
import { ChainConflict, isRefused, lasts, LoopError, NoAnswer, NotAllowed, ofProgram, ParleyError, passes, Refusal, TenderError, TermsError } from './errors.js';
import { HTTP } from './http.js';
import { canonical, uuid7Of } from './json.js';
import { checked, draftOf } from './moves.js';
import { sealed, shown } from './seal.js';
import { Signer } from './sign.js';
import { traceOf } from './trace.js';
import type { Draft, Entry, Snapshot, Transport } from './wire.js';

const waitSeconds = 50; // of turn.wait, the most
const mostInARow = 16; // acts without an entry of somebody else
const mostAtOnce = 64; // sessions that handlers work on
const quick = 30_000; // milliseconds after which a call that nobody repeats gives up
const soon = 1000; // milliseconds that the broker has to answer negotiate, however short its timeout
const quietFor = 2000; // milliseconds without an entry, after which negotiate asks for the end of the session
const endSeconds = 10; // that it waits for one at a time
const mostEnds = 16; // sessions whose ends are waited for at once
const mostToTell = 2000; // milliseconds that a wake-up call waits for onError
const firstPause = 200;
const longestPause = 10_000;
const noPart = ['unknown_session', 'authority_exceeded'] as const; // of who may not read a session, or no more: a delegation ends
const noHash = `sha256:${'0'.repeat(64)}`; // the head of a session that has no entry

/** A reducer: one view of a deal in, at most one act out. It may be called again on the same view. */
export type Handler<T> = (deal: Deal<T>) => Decision | Promise<Decision>;

/** What makes an agent. */
export interface AgentOptions<T> {
  /** Of the broker; by default http://127.0.0.1:8080. While it does not answer, the agent warns once and asks again. */
  url?: string | undefined;
  /** A token of the agent's (`parley token add URI`); under `--dev` its URI. */
  token?: string | undefined;
  /** The agent's URI, which a key of its own needs. */
  agent?: string | undefined;
  /** Seed of the signing key (`SU…`); without one the agent is hosted. */
  seed?: string | undefined;
  /** The author's schema of terms: zod's, or any other Standard Schema. */
  terms?: TermsSchema<T>;
  /**
   * The name under which the first invitation publishes `terms` as a terms schema, such as `acme-cups-v1`. A name is of
   * one schema for ever, so a changed schema needs another. The broker then checks the terms of offers that name it.
   */
  schema?: string;
  /** Another way to the broker than HTTP: `nats({…})` of `@parley-asp/sdk/nats`. */
  transport?: Transport;
  /**
   * Returns the `traceparent` (W3C Trace Context) of the trace that acts and calls join, or undefined. It is asked in the
   * caller's context, and what handlers say in a session joins the trace in which you opened it, or had it reduced.
   */
  traceparent?: (() => string | undefined) | undefined;
}

/** What `negotiate` takes besides. */
export interface NegotiateOptions {
  /** Of the session (PROTOCOL.md section 8); by default `asp/1`. */
  mode?: string;
  /** Tells two negotiations with the same arguments apart. */
  key?: string;
  /**
   * Milliseconds; then the deal is returned as it is, and goes on in the background. If the broker has not answered by
   * then, or in a second, negotiate throws NoAnswer: the same call again is safe.
   */
  timeout?: number;
  policy?: Record<string, unknown>;
}

interface Work<T> {
  entries: Entry[];
  latest?: Snapshot | undefined;
  woken: boolean;
  running: boolean;
  timer?: ReturnType<typeof setTimeout> | undefined;
  last?: Deal<T> | undefined;
  finals: Set<(deal: Deal<T> | Promise<never>) => void>;
  first?: Act | undefined;
  trace?: string | undefined; // in which the program opened it, or had it reduced
  lost?: unknown; // how the broker refused it: the agent has no part in it, or no more
}

/** The agents that serve: they look again when a test has moved the broker's clock. */
export const serving = new Set<{ lookAgain(): void }>();

/** The card of an agent, as it registered it. */
export interface Card {
  agentId: string;
  [member: string]: unknown;
}

/** Make an agent, over HTTP unless `transport` says otherwise. */
export function agent<T = Record<string, unknown>>(options: AgentOptions<T>): Agent<T> {
  return new Agent(options);
}

/** Handlers that decide, and the loop that keeps their decisions right under failure. `agent` makes it. */
export class Agent<T> {
  readonly #schema: TermsSchema<T> | undefined;
  readonly #named: string | undefined;
  readonly #traceparent: (() => string | undefined) | undefined;
  #published: Promise<unknown> | undefined;
  readonly #transport: Transport;
  readonly #handlers: { turn?: Handler<T>; invitation?: Handler<T>; check?: Handler<T> } = {};
  readonly #work = new Map<string, Work<T>>();
  readonly #stop = new AbortController();
  readonly #ends = new Set<() => void>(); // of what waits, when the agent is closed
  readonly #slots = new Slots(mostAtOnce);
  readonly #endSlots = new Slots(mostEnds);
  #loop: Promise<void> | undefined;
  #warned = false;
  #away = false; // the broker did not answer last
  #refused: ((deal: Deal<T>, decision: Act, refusal: Refusal) => unknown) | undefined;
  #failed: ((error: unknown, deal: Deal<T> | undefined) => unknown) | undefined;

  constructor(options: AgentOptions<T>) {
    this.#schema = options.terms;
    this.#named = options.schema;
    this.#traceparent = options.traceparent;
    if (options.schema !== undefined) jsonOf(options.terms); // throws
    this.#transport = options.transport ?? httpOf(options);
  }

  /** Decide when the session waits for you, your offer lapsed, or something is agreed and you may close, commit or accept. */
  onTurn(handler: Handler<T>): this { this.#handlers.turn = handler; return this; }
  /** Answer an invitation. Without this handler invitations are left alone. */
  onInvitation(handler: Handler<T>): this { this.#handlers.invitation = handler; return this; }
  /** Answer what others delegate to you: `deal.check` says what. */
  onCheck(handler: Handler<T>): this { this.#handlers.check = handler; return this; }
  /** Hear of a refusal that deciding again does not mend. The session rests until there is news. */
  onRefused(handler: (deal: Deal<T>, decision: Act, refusal: Refusal) => unknown): this { this.#refused = handler; return this; }
  /** Hear of what a handler threw, or of a decision that is not allowed. The session rests until there is news. */
  onError(handler: (error: unknown, deal: Deal<T> | undefined) => unknown): this { this.#failed = handler; return this; }

  /**
   * Serve all sessions until the signal, or close(). It throws a Refusal if the broker refuses the agent from the
   * beginning, such as `unauthorized` for a wrong token.
   */
  async run(o: { signal?: AbortSignal } = {}): Promise<void> {
    o.signal?.addEventListener('abort', () => void this.close());
    if (o.signal?.aborted) return this.close();
    this.start();
    await this.#loop;
  }

  /** Begin to serve, in the background. */
  start(): this {
    serving.add(this);
    if (!this.#loop) (this.#loop = this.#listen()).catch(() => undefined); // whom run does not wait for, onError was called
    return this;
  }

  /** Stop. What a handler decides from now on is not said; the next start decides it again. */
  async close(): Promise<void> {
    serving.delete(this);
    this.#stop.abort();
    for (const end of this.#ends) end();
    for (const w of this.#work.values()) clearTimeout(w.timer);
    await this.#transport.close();
    await this.#loop?.catch(() => undefined);
  }

  /** Stop, as close() does. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /**
   * Invite an agent, make the first offer (its terms, or the whole act), and let `onTurn` decide until the session
   * is over. The same arguments are the same session, also after a crash; with another token only if `agent` is given. It throws a TermsError, before anything is
   * sent, if JSON cannot say the terms, and a Refusal if the invitation is refused, or the name of `schema` is taken by
   * another one (`duplicate`).
   */
  async negotiate(peer: string, subject: string, first?: (T & Terms) | Act, o: NegotiateOptions = {}): Promise<Deal<T>> {
    const offer = offerOf(first, subject);
    const endsAt = o.timeout === undefined ? undefined : Date.now() + o.timeout;
    const left = (least: number): number | undefined => (endsAt === undefined ? undefined : Math.max(least, endsAt - Date.now()));
    this.start();
    const trace = traceOf(this.#traceparent);
    const session = await this.#sessionOf(peer, subject, o);
    const work = this.#begun(session, offer, trace); // and waited for, before anything else may let it go
    let final: ((deal: Deal<T> | Promise<never>) => void) | undefined;
    const over = new Promise<Deal<T>>((resolve) => { work.finals.add((final = resolve)); });
    over.catch(() => undefined); // it may be known before it is waited for
    const returned = new AbortController();
    try {
      const invited = this.#invite(session, peer, subject, o, left(soon)).then(() => true);
      let deal: Deal<T> | undefined;
      if (await this.#within(invited, left(soon))) {
        this.#wake(session);
        void this.#waitForEnd(session, work, returned.signal);
        deal = (await this.#within(over, left(0))) ?? work.last;
        if (!this.#stop.signal.aborted) deal ??= await this.#within(this.deal(session), soon);
      }
      if (this.#stop.signal.aborted && !deal?.over) throw new ParleyError('the agent was closed');
      if (!deal) throw new NoAnswer(`the broker has not answered within ${o.timeout} ms: the same call again is safe`);
      return deal;
    } finally {
      returned.abort();
      if (final) work.finals.delete(final);
      this.#forget(session, work, work.last === undefined);
    }
  }

  /**
   * Invite an agent, and return the session; `reduce` makes the first offer, once this process has called `open`. The same
   * arguments are the same session, so call it again in another process, such as after a restart.
   */
  async open(peer: string, subject: string, first?: (T & Terms) | Act, o: Omit<NegotiateOptions, 'timeout'> = {}): Promise<string> {
    const [offer, trace] = [offerOf(first, subject), traceOf(this.#traceparent)];
    const session = await this.#sessionOf(peer, subject, o);
    const work = this.#begun(session, offer, trace);
    try {
      await this.#invite(session, peer, subject, o);
    } catch (error) {
      this.#forget(session, work, work.last === undefined);
      throw error;
    }
    return session;
  }

  /**
   * Negotiate with several agents at once, each in a session of its own. Where some failed, such as to be invited, it throws
   * a TenderError, once all have ended, that has the deals with the others; where all failed, the first error.
   */
  async tender(agents: string[], subject: string, first?: (T & Terms) | Act, o: NegotiateOptions = {}): Promise<Deal<T>[]> {
    const failed = new Map<string, unknown>();
    const all = agents.map((a) => this.negotiate(a, subject, first, o).catch((error: unknown) => void failed.set(a, error)));
    const deals = (await Promise.all(all)).filter((deal) => deal !== undefined);
    if (failed.size > 0) throw deals.length > 0 ? new TenderError(deals, failed) : [...failed.values()][0];
    return deals;
  }

  /** Cards of agents by words, capability or organisation. */
  async find(asked: { query?: string; capability?: string; organization?: string; limit?: number } = {}): Promise<Card[]> {
    return ((await this.call('agent.search', { limit: 20, ...asked })) as { agents: Card[] }).agents;
  }

  /** A session as it is now. */
  async deal(session: string): Promise<Deal<T>> {
    const work = this.#work.get(session) ?? newWork();
    work.latest = undefined; // news that a handler has yet to see, and that may be old
    return this.#look(session, work);
  }

  /** Call a verb of the api, again for at most 30 seconds if it is not answered. */
  async call(verb: string, request: Record<string, unknown>): Promise<unknown> {
    const trace = traceOf(this.#traceparent);
    return this.#patiently(() => this.#transport.call(verb, request, undefined, trace), quick);
  }

  /** Say one act on a deal, outside a handler, and return the deal after it, as far as you may still read it. */
  async say(deal: Deal<T>, decision: Act): Promise<Deal<T>> {
    const draft = draftOf(checked(decision), deal);
    if (draft.performative === 'ESCALATE') askedBefore(deal, draft.body['referenceId']);
    await this.#say(deal, draft, traceOf(this.#traceparent));
    if (this.#loop && this.#work.has(deal.id)) this.#wake(deal.id); // what the agent says itself is no news
    return this.deal(deal.id).catch(ifNoPart(deal)); // such as after a delegation was declined, or given back
  }

  /** Decide in one session until there is nothing to do: for cron, queues, serverless. */
  async reduce(session: string): Promise<Deal<T>> {
    const work = this.#workOf(session);
    work.trace = traceOf(this.#traceparent) ?? work.trace;
    try {
      await this.#reduce(session, work);
    } catch (error) {
      if (error === work.lost) this.#lose(session, work, error);
      throw error;
    } finally {
      this.#forget(session, work);
    }
    return work.last!;
  }

  /** Reduces the session of a wake-up call, and reports whether the call is done. If not, it should come again. @internal */
  async called(session: string): Promise<boolean> {
    const work = this.#workOf(session);
    try {
      await this.reduce(session);
      return !this.#stop.signal.aborted; // or what was decided was not said
    } catch (error) {
      if (passes(error)) return false;
      const lost = error === work.lost;
      if (!lost) await this.#within(this.#fail(error, work.last), mostToTell);
      // What follows from the session would be thrown again. What else is thrown, such as of a database or a token, may pass.
      return lost || lasts(error);
    }
  }

  /** Wakes each session that has news; all open ones at the start, and after the broker was away. */
  async #listen(): Promise<void> {
    let cursor: string | undefined;
    let swept = false;
    while (!this.#stop.signal.aborted) {
      try {
        cursor ??= await this.#news(undefined, 0); // before the sweep, so that nothing comes between the two
        if (!swept) await this.#sweep();
        swept = true;
        cursor = await this.#news(cursor, waitSeconds);
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        swept = false;
        if (!passes(error)) {
          void this.#fail(error, undefined);
          if (cursor === undefined) throw error; // such as a wrong token: it was never right
        }
        await this.#pause(((error as Refusal).retryAfter ?? 1) * 1000);
      }
    }
  }

  /** Wakes the session of the next news, if there are any within some seconds; returns the cursor after them. */
  async #news(since: string | undefined, seconds: number): Promise<string> {
    const asked = { seconds, ...(since === undefined ? {} : { since }) };
    const answer = (await this.#answered(this.#transport.call('turn.wait', asked, this.#stop.signal))) as { cursor: string; snapshot?: Snapshot };
    if (answer.snapshot) this.#wake(answer.snapshot.sessionId, answer.snapshot);
    return answer.cursor;
  }

  /** Wakes a session once it is over. Waits leave out what the agent says itself, so they do not tell of an end by another worker. */
  async #waitForEnd(sessionId: string, work: Work<T>, returned: AbortSignal): Promise<void> {
    while (!returned.aborted && !this.#stop.signal.aborted) {
      const head = work.last?.view.head.n;
      await this.#pause(quietFor);
      if (head === undefined || head !== work.last?.view.head.n) continue;
      await this.#endSlots.enter();
      try {
        if (returned.aborted) return;
        const asked = { sessionId, since: `${head + 1}`, seconds: endSeconds };
        const { snapshot } = (await this.#transport.call('turn.wait', asked, returned)) as { snapshot?: Snapshot };
        if (snapshot && over(snapshot.state) && !this.#stop.signal.aborted) this.#wake(sessionId, snapshot);
      } catch (error) { // it asks again, after a pause; what lasts ends the loop that serves
        if (isRefused(error, ...noPart) && !returned.aborted) this.#wake(sessionId);
      } finally {
        this.#endSlots.leave();
      }
    }
  }

  async #sweep(): Promise<void> {
    let cursor: string | undefined;
    do {
      const asked = { limit: 200, ...(cursor === undefined ? {} : { cursor }) };
      const page = (await this.#answered(this.#transport.call('session.list', asked))) as { sessions: { sessionId: string; state: string }[]; next?: string };
      for (const row of page.sessions) if (!over(row.state) || this.#work.has(row.sessionId)) this.#wake(row.sessionId);
      cursor = page.sessions.every((row) => over(row.state)) ? undefined : page.next;
    } while (cursor !== undefined);
  }

  async #sessionOf(peer: string, subject: string, o: NegotiateOptions): Promise<string> {
    return uuid7Of(this.#transport.identity, peer, subject, o.mode ?? 'asp/1', o.key ?? '');
  }

  #begun(session: string, first: Act | undefined, trace: string | undefined): Work<T> {
    const work = this.#workOf(session);
    work.trace = trace ?? work.trace;
    work.first = first;
    return work;
  }

  #workOf(session: string): Work<T> {
    let work = this.#work.get(session);
    if (!work) this.#work.set(session, (work = newWork()));
    return work;
  }

  #wake(session: string, snapshot?: Snapshot): void {
    const work = this.#workOf(session);
    work.woken = true;
    if (snapshot) work.latest = snapshot;
    if (!work.running) void this.#serve(session, work);
  }

  /** Looks at all sessions again, such as after a test has moved the broker's clock. */
  lookAgain(): void {
    if (this.#loop && !this.#stop.signal.aborted) for (const session of this.#work.keys()) this.#wake(session);
  }

  /** Reduces a session as often as it is woken. Nothing that happens in it ends the agent. */
  async #serve(session: string, work: Work<T>): Promise<void> {
    work.running = true;
    while (work.woken && !this.#stop.signal.aborted) {
      work.woken = false;
      let again = false;
      await this.#slots.enter();
      try {
        await this.#reduce(session, work);
      } catch (error) {
        if (this.#stop.signal.aborted) break;
        if (error === work.lost) {
          this.#lose(session, work, error);
          if (work.woken) this.#wake(session); // such as by another delegation
          break;
        }
        if (error instanceof NoAnswer) work.woken = again = true;
        else void this.#fail(error, work.last);
      } finally {
        this.#slots.leave();
      }
      if (again) await this.#pause(firstPause);
    }
    work.running = false;
    this.#forget(session, work);
  }

  /** Lets go of a session in which the agent has no part, or no more. */
  #lose(session: string, work: Work<T>, error: unknown): void {
    for (const final of work.finals) final(Promise.reject(error as Error));
    clearTimeout(work.timer);
    if (this.#work.get(session) === work) this.#work.delete(session);
  }

  /** Lets go of a session that is over, once nobody waits for it. */
  #forget(session: string, work: Work<T>, over = work.last?.over): void {
    if (over && !work.running && work.finals.size === 0 && this.#work.get(session) === work) this.#work.delete(session);
  }

  /** Decides and says, until the handlers have nothing to say about the newest entry. */
  async #reduce(session: string, work: Work<T>): Promise<void> {
    let said = 0;
    let next: Act | undefined; // what was decided, and waits for another act of the agent's own
    let deal = await this.#look(session, work);
    for (;;) {
      work.last = deal;
      clearTimeout(work.timer);
      if (deal.over) {
        for (const final of work.finals) final(deal);
        return;
      }
      let decision = next ?? (await this.#decide(deal, work));
      if (!decision || 'wait' in decision) {
        this.#rest(session, work, deal, decision?.seconds);
        return;
      }
      const decided = decision;
      decision = takesBack(deal, decided);
      next = decision === decided ? undefined : decided;
      if (committedBefore(deal, checked(decision))) {
        this.#rest(session, work, deal, undefined);
        return;
      }
      const draft = draftOf(decision, deal);
      if (draft.performative === 'ESCALATE') askedBefore(deal, draft.body['referenceId']);
      if (said >= mostInARow) throw new LoopError(`${said} acts in a row, the last ${draft.performative}: nobody else has said anything`);
      if (this.#stop.signal.aborted) return;
      const before = work.entries.length;
      try {
        await this.#say(deal, draft);
        said++;
      } catch (error) {
        if (isRefused(error, 'chain_conflict')) {
          const snapshot = (error.details as { snapshot?: Snapshot } | undefined)?.snapshot;
          if (snapshot) work.latest = snapshot;
          next = undefined;
        } else {
          if (isRefused(error, 'unknown_session')) work.lost = error;
          if (!(error instanceof Refusal) || error === work.lost || ofProgram(error)) throw error;
          work.latest = undefined; // what came while the handler ran is older than the refusal
          const now = await this.#look(session, work);
          if (now.head !== deal.head || canonical(now.moves) !== canonical(deal.moves)) { // such as when the offer has expired: decide again
            deal = now;
            said++;
            next = undefined;
            continue;
          }
          if (this.#refused) await this.#refused(deal, decision, error);
          else console.warn(`parley: ${draft.performative} in ${session} is refused: ${error.message}`);
          return;
        }
      }
      deal = await this.#lookPast(session, work, deal.head);
      if (work.entries.slice(before).some((e) => e.sender.agentId !== deal.me)) {
        said = 0;
        next = undefined;
      }
    }
  }

  /** The newest snapshot, once the session has gone on from a head: it may be older than what was said already. */
  async #lookPast(session: string, work: Work<T>, head: string): Promise<Deal<T>> {
    for (;;) {
      const deal = await this.#look(session, work);
      if (deal.head !== head || this.#stop.signal.aborted) return deal;
      await this.#pause(firstPause);
    }
  }

  /** The newest snapshot, with all entries that the caller may read. */
  async #look(session: string, work: Work<T>): Promise<Deal<T>> {
    let snapshot = work.latest;
    work.latest = undefined;
    if (snapshot) take(work.entries, snapshot);
    while (snapshot === undefined || snapshot.head.n + 1 !== work.entries.length) {
      const since = work.entries.length;
      const asked = this.#patiently(() => this.#transport.call('session.snapshot', { sessionId: session, since }, undefined, this.#traceIn(session)));
      snapshot = (await asked.catch((error: unknown) => {
        if (isRefused(error, ...noPart)) work.lost = error;
        throw error;
      })) as Snapshot;
      if (!take(work.entries, snapshot)) break; // it has all, or may not read more
    }
    const me = snapshot.you.agentId ?? '';
    const checks = snapshot.open.some((i) => (i.kind === 'delegation' || i.kind === 'check') && i.for.includes(me));
    return new Deal(snapshot, [...work.entries], this.#schema, checks ? await this.#check(session, me) : undefined, this.#named);
  }

  async #check(session: string, me: string): Promise<Delegation> {
    const c = (await this.#patiently(() => this.#transport.call('check.get', { sessionId: session }, undefined, this.#traceIn(session)))) as Record<string, string>;
    return {
      id: c['delegationId'] ?? '', target: me, by: c['from'] ?? '', authority: c['authority'] ?? '', scope: c['scope'] ?? '',
      about: c['referenceId'], status: c['status'] ?? '', result: undefined,
    };
  }

  async #decide(deal: Deal<T>, work: Work<T>): Promise<Decision> {
    if (work.first && deal.role === 'inviter' && deal.round === 0 && deal.offers.length === 0 && deal.allows('PROPOSE')) return work.first;
    const kind = whose(deal);
    if (!kind) return undefined;
    const handler = this.#handlers[kind];
    if (handler) return handler(deal);
    if (kind === 'invitation' && !this.#warned) {
      this.#warned = true;
      console.warn('parley: an invitation waits, and there is no onInvitation: it is left alone');
    }
    return undefined;
  }

  async #say(deal: Deal<T>, draft: Draft, joins?: string): Promise<void> {
    const trace = joins ?? this.#traceIn(deal.id);
    const ask = (verb: string, request: Record<string, unknown>): Promise<unknown> => this.#patiently(() => this.#transport.call(verb, request, undefined, trace));
    const { signer } = this.#transport;
    const made = await bound(deal, draft, signer, ask);
    const id = await uuid7Of(deal.id, deal.head, made.performative, shown(made));
    const said = await sealed(made, deal.id, id, signer);
    if (await this.#freshly(() => this.#transport.say(deal.id, said, deal.view.head, id, trace))) return;
    const { messages } = (await ask('session.messages', { sessionId: deal.id, messageId: id }).catch(ifNoPart({ messages: [] }))) as { messages: Entry[] };
    if (messages.some((e) => e.sender.agentId !== deal.me)) throw new ChainConflict('somebody else has used its id: decide again');
  }

  /** The trace of what a session makes the agent ask and say. */
  #traceIn(session: string): string | undefined {
    return this.#work.get(session)?.trace ?? traceOf(this.#traceparent);
  }

  /** Registers the schema of terms, once. The same again changes nothing, and another one is refused. */
  async #publish(): Promise<void> {
    if (this.#named === undefined) return;
    this.#published ??= this.call('schema.put', { name: this.#named, schema: jsonOf(this.#schema) });
    try {
      await this.#published;
    } catch (error) {
      this.#published = undefined;
      throw error;
    }
  }

  async #invite(session: string, peer: string, subject: string, o: NegotiateOptions, giveUp?: number): Promise<void> {
    const terms = { purpose: subject, participants: [peer], mode: o.mode, policy: o.policy, schemas: this.#named && [this.#named] };
    await this.#publish();
    const draft = { performative: 'PROPOSE', body: { proposalId: 'invitation', type: 'session-invitation', subject, terms } };
    const id = await uuid7Of(session, noHash, draft.performative, draft.body);
    let there = false; // from before a crash, or by another worker, or somebody else
    try {
      if (await this.#freshly(() => this.#transport.say(session, draft, undefined, id, this.#traceIn(session)), giveUp)) return;
      there = true;
    } catch (error) {
      there = isRefused(error, 'chain_conflict', 'wrong_state');
      if (!there && !isRefused(error, 'unknown_session')) throw error;
    }
    const view = there ? ((await this.#patiently(() => this.#transport.call('session.snapshot', { sessionId: session }))) as Snapshot) : undefined;
    if (view?.you.role !== 'inviter') {
      throw new ParleyError('somebody else has opened a session with the id of this negotiation, or it is no longer kept: give it another key');
    }
  }

  /** Says something patiently, and once more by the broker's clock if this one is off. False: its id was used before. */
  async #freshly(say: () => Promise<unknown>, giveUp?: number): Promise<boolean> {
    const again = async (error: unknown): Promise<unknown> => {
      if (!isRefused(error, 'stale_timestamp')) throw error;
      return this.#patiently(say, giveUp);
    };
    try {
      await this.#patiently(say, giveUp).catch(again);
      return true;
    } catch (error) {
      // Without details it was said before, as a rule: its answer was lost, or another worker said it. Otherwise it offers the same.
      if (!isRefused(error, 'duplicate') || error.details !== undefined) throw error;
      return false;
    }
  }

  /** Does something again until it is answered. Only an error that passes has it repeated. */
  async #patiently(act: () => Promise<unknown>, giveUp = Infinity): Promise<unknown> {
    const began = Date.now();
    for (let pause = firstPause; ; pause = Math.min(pause * 2, longestPause)) {
      try {
        return await this.#answered(act());
      } catch (error) {
        if (!passes(error)) throw error;
        const after = error instanceof Refusal && error.retryAfter ? error.retryAfter * 1000 : pause * (0.5 + Math.random() / 2);
        if (Date.now() - began + after > giveUp || this.#stop.signal.aborted) throw error;
        await this.#pause(after);
      }
    }
  }

  /** What the broker answers. It says once that there is no answer, and once that there is one again. */
  async #answered<R>(asked: Promise<R>): Promise<R> {
    try {
      const answer = await asked;
      this.#answers();
      return answer;
    } catch (error) {
      if (error instanceof Refusal) this.#answers();
      if (!(error instanceof NoAnswer) || this.#stop.signal.aborted) throw error;
      if (!this.#away) console.warn(`parley: the broker does not answer, and is asked again (url names it, of PARLEY_URL): ${error.message}`);
      this.#away = true;
      throw error;
    }
  }

  #answers(): void {
    if (this.#away) console.warn('parley: the broker answers again');
    this.#away = false;
  }

  /** What is done within some milliseconds, and before the agent is closed; else undefined. */
  async #within<R>(done: Promise<R>, milliseconds: number | undefined): Promise<R | undefined> {
    let end = (): void => undefined;
    const late = new Promise<undefined>((resolve) => (end = () => resolve(undefined)));
    const timer = milliseconds === undefined ? undefined : setTimeout(end, milliseconds);
    this.#ends.add(end);
    if (this.#stop.signal.aborted) end();
    try {
      return await Promise.race([done, late]);
    } finally {
      clearTimeout(timer);
      this.#ends.delete(end);
    }
  }

  async #pause(milliseconds: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#ends.delete(done);
        resolve();
      };
      const timer = setTimeout(done, milliseconds);
      if (this.#stop.signal.aborted) done();
      else this.#ends.add(done);
    });
  }

  /** Looks again when an offer expires, or when the handler wants to. */
  #rest(session: string, work: Work<T>, deal: Deal<T>, seconds: number | undefined): void {
    const times = deal.offers.flatMap((o) => (o.open && o.expires ? [Math.max(1000, o.expires.getTime() - Date.now() + 500)] : [])); // this clock may be ahead
    if (seconds !== undefined) times.push(seconds * 1000);
    if (times.length === 0 || !this.#loop || this.#stop.signal.aborted) return;
    work.timer = setTimeout(() => this.#wake(session), Math.min(Math.max(100, Math.min(...times)), 2 ** 31 - 1));
  }

  async #fail(error: unknown, deal: Deal<T> | undefined): Promise<void> {
    try {
      if (this.#failed) await this.#failed(error, deal);
      else console.error(`parley: ${deal ? `in ${deal.id}: ` : ''}`, loggable(error));
    } catch (e) {
      console.error('parley: onError failed', loggable(e));
    }
  }
}

/** How much is done at once; the rest waits for its turn. */
class Slots {
  readonly #waiting: (() => void)[] = [];
  #busy = 0;

  constructor(readonly most: number) {}

  async enter(): Promise<void> {
    if (this.#busy < this.most) this.#busy++;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  leave(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#busy--;
  }
}

/** The first offer, checked. */
function offerOf(first: Terms | Act | undefined, subject: string): Act | undefined {
  if (first === undefined || first === null) return undefined;
  return checked(typeof first === 'object' && 'performative' in first && 'fills' in first ? first : propose(first, { subject }));
}

/** An error without members, which may be secret, such as the details of a refusal. */
function loggable(error: unknown): unknown {
  return error instanceof ParleyError ? error.message : error instanceof Error ? error.stack : error;
}

/** What a refusal of who has no part any more is taken for. */
function ifNoPart<R>(instead: R): (error: unknown) => R {
  return (error) => {
    if (isRefused(error, ...noPart)) return instead;
    throw error;
  };
}

function over(state: string): boolean {
  return state === 'CLOSED' || state === 'FAILED';
}

function newWork<T>(): Work<T> {
  return { entries: [], woken: false, running: false, finals: new Set() };
}

/** The JSON Schema of what a schema of terms reads. */
function jsonOf<T>(terms: TermsSchema<T> | undefined): Record<string, unknown> {
  const made = terms?.['~standard'].jsonSchema?.input({ target: 'draft-2020-12' });
  if (!made) throw new TypeError('schema names what terms publishes: agent({ terms, schema }), with terms that are a Standard JSON Schema, such as those of zod 4.2');
  return made;
}

/** Adds the news of a snapshot to the entries before it; reports whether there were any. */
function take(entries: Entry[], snapshot: Snapshot): boolean {
  const before = entries.length;
  for (const e of snapshot.news ?? []) if (e.sequenceNumber === entries.length) entries.push(e);
  return entries.length > before;
}

/** Which handler decides: none while the session waits for somebody else. */
function whose<T>(deal: Deal<T>): 'turn' | 'invitation' | 'check' | undefined {
  if (deal.state === 'ESCALATED') return undefined;
  if (deal.invitation) return 'invitation';
  if (deal.check) return 'check';
  return deal.yours || deal.lapsed || (deal.agreed && ['CLOSE', 'COMMIT', 'ACCEPT'].some((act) => deal.allows(act))) ? 'turn' : undefined;
}

/** Whether a COMMIT says again what the same side said about the same offer, and what is open or accepted still. */
function committedBefore<T>(deal: Deal<T>, { performative, reference, fills }: Act): boolean {
  const made = performative === 'COMMIT' && reference !== undefined ? deal.commitment(reference) : undefined;
  return made !== undefined && made.mine && ['terms', 'outcome'].every((name) => canonical({ [name]: made.raw[name] }) === canonical({ [name]: fills[name] }));
}

/** A WITHDRAW of the delegation about another offer, which comes before a DELEGATE to the same agent. */
function takesBack<T>(deal: Deal<T>, decision: Act): Act {
  const target = decision.performative === 'DELEGATE' ? decision.fills['targetAgent'] : undefined;
  const standing = typeof target === 'string' ? deal.delegation(target) : undefined;
  const other = standing && standing.about !== decision.fills['referenceId'];
  return other && deal.allows('WITHDRAW', standing.id) ? withdraw(standing.id) : decision;
}

/** Refuses to ask people twice about one offer, as a framework that runs a step again would. */
function askedBefore<T>(deal: Deal<T>, offer: unknown): void {
  const about = deal.offers.find((o) => o.id === offer);
  const found = about && deal.approval(about);
  if (found) throw new NotAllowed(`your people were asked about ${about.id} before: ${found.decision ?? 'they have not decided yet'}`);
}

function httpOf<T>(o: AgentOptions<T>): Transport {
  if (!o.token) throw new ParleyError('over HTTP an agent needs a token: agent({token})');
  if (o.seed && !o.agent) throw new ParleyError('an agent with a key of its own needs its URI: agent({agent})');
  const signer = o.seed && o.agent ? new Signer(o.agent, o.seed) : undefined;
  return new HTTP(o.url ?? 'http://127.0.0.1:8080', o.token, signer, o.agent);
}
