/** The broker over NATS, with one's own key: `agent({ transport: nats({…}), terms })`. */

import { AuthorizationError, nkeyAuthenticator, PermissionViolationError, type ConnectionOptions, type NatsConnection } from '@nats-io/nats-core';

import { NoAnswer, Refusal, refusalOf, Unauthorized } from './errors.js';
import { canonical } from './json.js';
import { aheadOf, Signer, tokenOf } from './sign.js';
import type { Draft, Head, Transport } from './wire.js';

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
export function nats(options: NatsOptions): Transport & { skew(milliseconds: number): void } {
  return new Nats(options);
}

class Nats implements Transport {
  readonly identity: string;
  readonly #options: NatsOptions;
  readonly signer: Signer;
  #connection: Promise<NatsConnection> | undefined;
  #watched: Promise<void> | undefined;
  #closed = false;
  #broken = false;
  readonly #asking = new Set<() => void>(); // gives up what is asked, when the connection breaks
  #ahead = 0; // milliseconds of the broker's clock before this one

  constructor(options: NatsOptions) {
    this.#options = options;
    this.identity = options.agent;
    this.signer = new Signer(options.agent, options.seed);
  }

  async #connected(): Promise<NatsConnection> {
    if (this.#closed) throw new NoAnswer('the transport was closed');
    const { connect, servers, agent, login } = this.#options;
    this.#connection ??= connect({
      servers,
      inboxPrefix: `_INBOX.${tokenOf(agent)}`,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 500,
      timeout: 5000,
      noAsyncTraces: true, // else it makes two errors ahead for each request
      ...(login ? { authenticator: nkeyAuthenticator(new TextEncoder().encode(login)) } : {}),
    });
    try {
      const connection = await this.#connection;
      this.#watched ??= this.#watch(connection);
      return connection;
    } catch (error) {
      this.#connection = undefined;
      throw this.#why(error, 'no connection to NATS');
    }
  }

  /** Gives up what was asked before the connection broke, and until it is there again: nobody answers it. */
  async #watch(connection: NatsConnection): Promise<void> {
    for await (const { type } of connection.status()) {
      if (type === 'disconnect') {
        this.#broken = true;
        for (const stop of this.#asking) stop();
      }
      if (type === 'reconnect') this.#broken = false;
    }
    this.#broken = false;
    this.#connection = this.#watched = undefined; // it is closed, such as when the login was taken away
  }

  #why(error: unknown, what: string): Error {
    const cause = (error as Error).cause ?? error;
    if (cause instanceof AuthorizationError || cause instanceof PermissionViolationError) {
      return new Unauthorized(`the login is not one of ${this.identity}`);
    }
    return new NoAnswer(`${what}: ${(error as Error).name}`);
  }

  async #request(subject: string, data: string, timeout: number, signal?: AbortSignal): Promise<unknown> {
    const connection = await this.#connected();
    const asked = connection.request(`asp.agent.${tokenOf(this.identity)}.${subject}`, data, { timeout });
    let stop = (): void => undefined;
    const stopped = new Promise<never>((_, reject) => (stop = () => reject(new Error('stopped'))));
    this.#asking.add(stop);
    signal?.addEventListener('abort', stop);
    let reply: { json(): unknown };
    try {
      if (this.#broken || signal?.aborted) stop();
      reply = await Promise.race([asked, stopped]);
    } catch (error) {
      asked.catch(() => undefined);
      throw this.#why(error, subject);
    } finally {
      this.#asking.delete(stop);
      signal?.removeEventListener('abort', stop);
    }
    const answer = reply.json() as { error?: Record<string, unknown> };
    if (answer.error) throw refusalOf(answer.error);
    return answer;
  }

  async call(verb: string, request: Record<string, unknown>, signal?: AbortSignal): Promise<unknown> {
    return this.#request(`api.${verb}`, canonical(request), Number(request['seconds'] ?? 0) * 1000 + answersIn, signal);
  }

  async say(session: string, draft: Draft, head: Head | undefined, messageId: string): Promise<unknown> {
    const envelope = await this.signer.envelope(session, draft, head, messageId, new Date(Date.now() + this.#ahead));
    try {
      return await this.#request(`submit.${session}`, envelope, answersIn);
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
