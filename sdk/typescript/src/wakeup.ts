/**
 * Wake-up calls (GATEWAYS.md G9): an agent that sleeps is called when a session concerns it. Each call is signed
 * as Standard Webhooks are, and repeated until it is answered with 2xx; so a handler may die.
 * @packageDocumentation
 */

import type { Agent } from './agent.js';
import { ParleyError } from './errors.js';

const tolerance = 300; // seconds between the call's clock and this one
const largest = 64 << 10; // bytes of a call
const shortest = 24; // bytes of a secret

/** The call is not signed with the secret, or is too old. */
export class Forged extends ParleyError {
  override name = 'Forged';
}

/** A call: which session has news for whom, since which entry. */
export interface Call {
  type: string;
  sessionId: string;
  agentId: string;
  since: number;
  hash: string;
  at: string;
}

/** The body of a call, if it is signed with the secret (`whsec_…`); throws Forged if it is not. */
export async function verifyCall(secret: string, headers: Headers, body: string, now = Date.now()): Promise<Call> {
  const stamp = headers.get('webhook-timestamp') ?? '';
  const text = new TextEncoder();
  const key = await crypto.subtle.importKey('raw', keyOf(secret), { name: 'HMAC', hash: 'SHA-256' }, false, ['verify']);
  const signed = text.encode(`${headers.get('webhook-id') ?? ''}.${stamp}.${body}`);
  const off = Math.abs(now / 1000 - Number(stamp || NaN));
  for (const given of (headers.get('webhook-signature') ?? '').split(' ')) {
    if (!given.startsWith('v1,') || !(off <= tolerance)) continue;
    const signature = bytesOf(given.slice(3));
    if (signature.length > 0 && (await crypto.subtle.verify('HMAC', key, signature, signed))) return JSON.parse(body) as Call;
  }
  throw new Forged('the call is not signed with the secret, or is too old');
}

/** The key of a secret; throws if it is none, or shorter than the broker takes. */
function keyOf(secret: string): Uint8Array<ArrayBuffer> {
  const key = bytesOf(secret.replace(/^whsec_/, ''));
  if (key.length < shortest) throw new ParleyError(`the secret of the wakeup is whsec_ and ${shortest} to 64 bytes in base64`);
  return key;
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}

/** A fetch handler that answers calls: for Next, Hono, Workers, Deno and Bun. It decides until there is nothing to do. */
export function wakeupHandler<T>(agent: Agent<T>, o: { secret: string }): (request: Request) => Promise<Response> {
  keyOf(o.secret); // throws
  return async (request) => {
    return new Response(null, { status: await answered(agent, o.secret, request.headers, await read(partsOf(request.body))) });
  };
}

/** What a handler of Express or of Node's http server is given. */
export interface NodeRequest extends AsyncIterable<Uint8Array | string> {
  headers: Record<string, string | string[] | undefined>;
}

/** What it answers with. */
export interface NodeResponse {
  statusCode: number;
  /** Sends the answer. */
  end(): unknown;
}

/** The same for Express and Node's http server; the body must not have been read. */
export function nodeWakeupHandler<T>(agent: Agent<T>, o: { secret: string }): (request: NodeRequest, response: NodeResponse) => Promise<void> {
  keyOf(o.secret); // throws
  return async (request, response) => {
    const body = await read(request);
    const headers = new Headers();
    for (const [name, value] of Object.entries(request.headers)) if (typeof value === 'string') headers.set(name, value);
    response.statusCode = await answered(agent, o.secret, headers, body);
    response.end();
  };
}

/** The parts of a stream, as not all runtimes iterate over one. */
async function* partsOf(stream: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array> {
  const reader = stream?.getReader();
  try {
    for (;;) {
      const part = await reader?.read();
      if (part?.value === undefined) return;
      yield part.value;
    }
  } finally {
    await reader?.cancel();
  }
}

/** A body, or why there is none: 413 if it is too large, and 400 if the client broke it off. */
async function read(parts: AsyncIterable<Uint8Array | string>): Promise<string | number> {
  const decoder = new TextDecoder();
  let body = '';
  try {
    for await (const part of parts) {
      body += typeof part === 'string' ? part : decoder.decode(part, { stream: true });
      if (body.length > largest) return 413;
    }
    return body;
  } catch {
    return 400;
  }
}

/** The status of the answer to a call. 503 has it come again. */
async function answered<T>(agent: Agent<T>, secret: string, headers: Headers, body: string | number): Promise<number> {
  if (typeof body === 'number') return body;
  let call: Call;
  try {
    call = await verifyCall(secret, headers, body);
  } catch {
    return 401;
  }
  return (await agent.called(call.sessionId)) ? 204 : 503;
}
