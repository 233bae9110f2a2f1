/** The broker over NATS, with one's own key: `agent({ transport: nats({…}), terms })`. @packageDocumentation */

import { AuthorizationError, createInbox, headers, nkeyAuthenticator, PermissionViolationError, type ConnectionOptions, type Msg, type NatsConnection, type PublishOptions } from '@nats-io/nats-core';

import { NoAnswer, ParleyError, Refusal, refusalOf, Unauthorized } from './errors.js';
import { aheadOf, Signer, tokenOf } from './sign.js';
import type { Draft, Head, Transport } from './wire.js';

/** What `nats` needs. */
export interface NatsOptions {
  /** `connect` of `@nats-io/transport-node`, or `wsconnect` of `@nats-io/nats-core` in browsers. */
  connect: (options: ConnectionOptions) => Promise<NatsConnection>;
  servers: string | string[];
  /** The agent's URI. */
  agent: string;
  /** Seed of the signing key (`SU…`). */
  seed: string;
  /** Seed of the login key (`SU…`); without one it logs in as nobody, as under `--dev`. */
  login?: string;
}

const answersIn = 20_000; // milliseconds, beyond what a verb waits by itself

/** A transport over NATS. It connects with the first call, and again for as long as it takes. */
export function nats(options: NatsOptions): Transport & {
  /** For tests: as if this clock were off by so many milliseconds. */
  skew(milliseconds: number): void;
} {
  return new Nats(options);
}

class Nats implements Transport {
  readonly identity: string;
  readonly #options: NatsOptions;
  readonly signer: Signer;
  readonly #token: string;
  #connection: Promise<NatsConnection> | undefined;
  #closed = false;
  #broken = false;
  #inbox = ''; // where answers come, with a number each
  #numbers = 0;
  readonly #asked = new Map<string, (answer: Msg | Error) => void>(); // by the subject of the answer
  #ahead = 0; // milliseconds of the broker's clock before this one

  constructor(options: NatsOptions) {
    if (!options.servers?.length) throw new ParleyError('the URL of the NATS servers is missing: nats({ servers }), such as nats://127.0.0.1:4222');
    this.#options = options;
    this.identity = options.agent;
    this.signer = new Signer(options.agent, options.seed);
    this.#token = tokenOf(options.agent);
  }

  async #connected(): Promise<NatsConnection> {
    if (this.#closed) throw new NoAnswer('the transport was closed');
    this.#connection ??= this.#connect();
    try {
      return await this.#connection;
    } catch (error) {
      this.#connection = undefined;
      throw this.#why(error, `no connection to ${[this.#options.servers].flat().join(', ').replace(/[^/,]*@/g, '')}`);
    }
  }

  async #connect(): Promise<NatsConnection> {
    const { connect, servers, login } = this.#options;
    const inboxPrefix = `_INBOX.${this.#token}`;
    const connection = await connect({
      servers,
      inboxPrefix,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 500,
      timeout: 5000,
      ...(login ? { authenticator: nkeyAuthenticator(new TextEncoder().encode(login)) } : {}),
    });
    this.#inbox = createInbox(inboxPrefix);
    connection.subscribe(`${this.#inbox}.*`, { callback: (error, message) => (error ? this.#giveUp(error) : this.#asked.get(message.subject)?.(message)) });
    void this.#watch(connection);
    return connection;
  }

  /** Gives up what was asked before the connection broke, and until it is there again: nobody answers it. */
  async #watch(connection: NatsConnection): Promise<void> {
    for await (const status of connection.status()) {
      if (status.type === 'disconnect') {
        this.#broken = true;
        this.#giveUp(new Error('disconnected'));
      }
      if (status.type === 'reconnect') this.#broken = false;
      if (status.type === 'error' && status.error instanceof PermissionViolationError) this.#giveUp(status.error);
    }
    this.#broken = false;
    this.#connection = undefined; // it is closed, such as when the login was taken away
    this.#giveUp(new Error('closed'));
  }

  #giveUp(why: Error): void {
    for (const answer of this.#asked.values()) answer(why);
  }

  #why(error: unknown, what: string): Error {
    const cause = (error as Error).cause ?? error;
    if (cause instanceof AuthorizationError || cause instanceof PermissionViolationError) {
      return new Unauthorized(`the login is not one of ${this.identity}`);
    }
    return new NoAnswer(`${what}: ${(error as Error).message}`);
  }

  async #request(subject: string, data: string, timeout: number, trace: string | undefined, signal?: AbortSignal): Promise<unknown> {
    const connection = await this.#connected();
    const reply = `${this.#inbox}.${this.#numbers++}`;
    const stop = (): void => this.#asked.get(reply)?.(new Error('stopped'));
    signal?.addEventListener('abort', stop);
    const publish: PublishOptions = { reply };
    if (trace !== undefined) (publish.headers = headers()).set('traceparent', trace);
    let timer: ReturnType<typeof setTimeout> | undefined;
    try {
      const came = await new Promise<Msg | Error>((resolve) => {
        this.#asked.set(reply, resolve);
        timer = setTimeout(() => resolve(new Error('timeout')), timeout);
        if (this.#broken || signal?.aborted) stop();
        else connection.publish(`asp.agent.${this.#token}.${subject}`, data, publish);
      });
      if (came instanceof Error) throw came;
      if (came.data.length === 0) throw new Error('nobody is there to answer');
      const answer = came.json<{ error?: Record<string, unknown> }>();
      if (answer.error) throw refusalOf(answer.error);
      return answer;
    } catch (error) {
      throw error instanceof Refusal ? error : this.#why(error, subject);
    } finally {
      clearTimeout(timer);
      this.#asked.delete(reply);
      signal?.removeEventListener('abort', stop);
    }
  }

  async call(verb: string, request: Record<string, unknown>, signal?: AbortSignal, trace?: string): Promise<unknown> {
    return this.#request(`api.${verb}`, JSON.stringify(request), Number(request['seconds'] ?? 0) * 1000 + answersIn, trace, signal);
  }

  async say(session: string, draft: Draft, head: Head | undefined, messageId: string, trace?: string): Promise<unknown> {
    const data = await this.signer.submission(session, draft, head, messageId, new Date(Date.now() + this.#ahead));
    try {
      return await this.#request(`submit.${session}`, data, answersIn, trace);
    } catch (error) {
      this.#ahead = aheadOf(error) ?? this.#ahead;
      throw error;
    }
  }

  skew(milliseconds: number): void {
    this.#ahead = milliseconds;
  }

  async close(): Promise<void> {
    this.#closed = true;
    const connection = await this.#connection?.catch(() => undefined);
    await connection?.close();
  }
}
