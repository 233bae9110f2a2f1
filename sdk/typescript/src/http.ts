/** The broker over HTTP: hosted with a token, or with one's own key beside it. */

import { isRefused, NoAnswer, ParleyError, refusalOf, VersionUnsupported } from './errors.js';
import { canonical } from './json.js';
import { aheadOf, type Signer } from './sign.js';
import type { Draft, Head, Transport } from './wire.js';

const paths: Record<string, [method: string, path: string]> = { // of verbs
  'session.get': ['GET', '/sessions/{sessionId}'],
  'session.list': ['GET', '/sessions'],
  'session.snapshot': ['GET', '/sessions/{sessionId}/snapshot'],
  'session.messages': ['GET', '/sessions/{sessionId}/messages'],
  'turn.wait': ['POST', '/turns/wait'],
  'wakeup.set': ['PUT', '/wakeup'],
  'check.get': ['GET', '/checks/{sessionId}'],
  'agent.search': ['GET', '/discover'],
  'agent.get': ['GET', '/agents/{agentId}/card'],
  'discovery.call': ['POST', '/discover'],
  'schema.put': ['PUT', '/schemas/{name}'],
  'schema.get': ['GET', '/schemas/{name}'],
  'schema.list': ['GET', '/schemas'],
  'escalation.list': ['GET', '/escalations'],
  'obligation.list': ['GET', '/obligations'],
  'dispute.list': ['GET', '/disputes'],
  'agreement.list': ['GET', '/agreements'],
  'agreement.get': ['GET', '/agreements/{agreementId}'],
};
const renamed: Record<string, Record<string, string>> = { 'session.messages': { since: 'since_sequence' }, 'agent.search': { minTrust: 'min_trust' } };

const contract = 1; // of the broker's api, as GET /v1/asp says it
const answersIn = 20_000; // milliseconds, beyond what a verb waits by itself

interface Init {
  body?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
  trace?: string | undefined;
}

/** The URL of a broker over HTTP, without a slash at its end; throws a ParleyError if it is none. */
export function httpUrl(url: string | undefined): string {
  const { protocol: over = '', username = '', password = '' } = url && URL.canParse(url) ? new URL(url) : {};
  if (url && (over === 'http:' || over === 'https:') && !username && !password) return url.replace(/\/+$/, '');
  const said = url ? `"${url.replace(/[^/]*@/, '')}" is no URL of a broker over HTTP` : 'the URL of the broker is missing';
  const nats = /^(nats|tls|wss?):$/.test(over) ? '; over NATS: agent({ transport: nats({ … }) }) of @parley-asp/sdk/nats' : '';
  throw new ParleyError(`${said}: set PARLEY_URL and give it as url, such as http://127.0.0.1:8080 (it begins with http:// or https://, and names no user)${nats}`);
}

export class HTTP implements Transport {
  readonly identity: string;
  readonly #base: string;
  readonly #token: string;
  readonly signer: Signer | undefined;
  readonly #closed = new AbortController();
  #contract: number | undefined; // that the broker speaks, once it was asked
  #ahead = 0; // milliseconds of the broker's clock before this one

  constructor(url: string | undefined, token: string, signer?: Signer, agent?: string) {
    this.#base = `${httpUrl(url)}/v1/asp`;
    this.#token = token;
    this.signer = signer;
    this.identity = agent ?? (token.startsWith('agent://') ? token : token.replace(/_[^_]*$/, ''));
  }

  /** Refuses a broker that speaks another contract. One that does not say is of before contracts had numbers. */
  async #checked(): Promise<void> {
    if (this.#contract) return;
    let about: { contract?: number; version?: string } = {};
    try {
      about = (await this.#send('GET', '', 0, {})) as typeof about;
    } catch (error) {
      if (!isRefused(error, 'malformed')) throw error;
    }
    const said = about.contract ?? contract;
    if (said !== contract) throw new VersionUnsupported(`this SDK speaks contract ${contract}, and the broker ${about.version} contract ${said}`);
    this.#contract = said;
  }

  async call(verb: string, request: Record<string, unknown>, signal?: AbortSignal, trace?: string): Promise<unknown> {
    await this.#checked();
    const known = paths[verb];
    if (!known) throw new TypeError(`no verb ${verb} over HTTP`);
    const [method] = known;
    const rest = { ...request };
    const at = verb === 'wakeup.set' && 'sessionId' in rest ? '/sessions/{sessionId}/wakeup' : known[1];
    const path = at.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = String(rest[name]);
      delete rest[name];
      return encodeURIComponent(value);
    });
    const waits = Number(rest['seconds'] ?? 0) * 1000;
    if (method !== 'GET') return this.#send(method, path, waits, { body: canonical(rest), signal, trace });
    const named = Object.entries(rest).map(([name, value]): [string, string] => [renamed[verb]?.[name] ?? name, String(value)]);
    const asked = new URLSearchParams(named).toString();
    return this.#send(method, asked ? `${path}?${asked}` : path, waits, { signal, trace });
  }

  async say(session: string, draft: Draft, head: Head | undefined, messageId: string, trace?: string): Promise<unknown> {
    await this.#checked();
    const path = `/sessions/${session}/messages`;
    if (this.signer) {
      const body = await this.signer.submission(session, draft, head, messageId, new Date(Date.now() + this.#ahead));
      try {
        return await this.#send('POST', path, 0, { body, headers: { 'Content-Type': 'application/asp+json' }, trace });
      } catch (error) {
        this.#ahead = aheadOf(error) ?? this.#ahead;
        throw error;
      }
    }
    return this.#send('POST', path, 0, { body: canonical({ ...draft, messageId }), headers: head ? { 'If-Match': `"${head.hash}"` } : {}, trace });
  }

  async #send(method: string, path: string, waits: number, init: Init): Promise<unknown> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), waits + answersIn);
    const abort = (): void => late.abort();
    for (const s of [this.#closed.signal, init.signal]) s?.addEventListener('abort', abort);
    if (this.#closed.signal.aborted || init.signal?.aborted) late.abort();
    const what = `${method} ${this.#base}${path.split('?')[0]}`;
    let answer: Response;
    let said: string;
    try {
      const headers: Record<string, string> = { Authorization: `Bearer ${this.#token}`, ...(init.body === undefined ? {} : { 'Content-Type': 'application/json' }), ...init.headers };
      if (init.trace) headers['traceparent'] = init.trace;
      answer = await fetch(this.#base + path, { method, headers, signal: late.signal, ...(init.body === undefined ? {} : { body: init.body }) });
      said = await answer.text();
    } catch (error) {
      throw new NoAnswer(`${what}: ${reasonOf(error)}`);
    } finally {
      clearTimeout(timer);
      for (const s of [this.#closed.signal, init.signal]) s?.removeEventListener('abort', abort);
    }
    const read = parsed(said);
    if (answer.ok && (said === '' || read !== undefined)) return read ?? {};
    if (typeof read !== 'object' || read === null || !('code' in read)) {
      throw new NoAnswer(`${what} is answered ${answer.status} by something else than parley`);
    }
    const after = answer.headers.get('retry-after');
    throw refusalOf(read as Record<string, unknown>, after && /^\d+$/.test(after) ? Number(after) : undefined);
  }

  /** For tests: as if this clock were off by so many milliseconds. */
  skew(milliseconds: number): void {
    this.#ahead = milliseconds;
  }

  async close(): Promise<void> {
    this.#closed.abort();
  }
}

/** Why fetch failed, such as ECONNREFUSED. */
function reasonOf(error: unknown): string {
  const { cause, message } = error as { cause?: { code?: string; message?: string }; message?: string };
  return cause?.code ?? cause?.message ?? message ?? 'no answer';
}

function parsed(text: string): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
