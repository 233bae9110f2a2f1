/**
 * Five tools and a prompt with which any model negotiates, as the broker's MCP server defines them:
 *
 *     const tools = await negotiationTools({ url, token });
 *     model.run({ system: tools.instructions, tools: tools.openai(), call: (name, args) => tools.call(name, args) });
 *
 * The definitions, their bounds and the fences around what the other side wrote are the broker's
 * (docs/GATEWAYS.md, MCP). The agent is hosted. A model never decides what a human has to.
 * @packageDocumentation
 */

import { NoAnswer, ParleyError, Unauthorized } from './errors.js';
import { httpUrl } from './http.js';
import { traceOf } from './trace.js';

/** A tool of a model. */
export interface Tool {
  readonly name: string;
  readonly description: string;
  /** The JSON Schema of its arguments. */
  readonly parameters: Record<string, unknown>;
  /** It changes nothing. */
  readonly reads: boolean;
}

/** What `negotiationTools` needs. */
export interface ToolsOptions {
  /** Of the broker; by default http://127.0.0.1:8080. */
  url?: string | undefined;
  /** A token of a hosted agent. */
  token: string;
  /** The full set instead of five. */
  everything?: boolean;
  /** As that of an agent. */
  traceparent?: (() => string | undefined) | undefined;
}

interface ListedTool {
  name: string;
  description: string;
  inputSchema: Record<string, unknown>;
  annotations?: { readOnlyHint?: boolean };
}

/** The tools, and `instructions`: the prompt that goes with them. */
export interface NegotiationTools {
  readonly instructions: string;
  readonly tools: readonly Tool[];
  /** The definitions as OpenAI's chat completions and its like take them. */
  openai(): { type: 'function'; function: { name: string; description: string; parameters: Record<string, unknown> } }[];
  /** The definitions as Anthropic's messages take them. */
  anthropic(): { name: string; description: string; input_schema: Record<string, unknown> }[];
  /**
   * Call a tool, and return what a model reads: JSON, also of a refusal, which says what is allowed instead. A call
   * without an answer is repeated where that says nothing twice; else the model is told to look first. With `signal` it can
   * be aborted: nothing more is sent then, though what was sent may be said.
   */
  call(name: string, args: Record<string, unknown>, o?: { signal?: AbortSignal | undefined }): Promise<string>;
}

const tries = 8;

/** Within how many milliseconds a model's calls are of one step. Who waits for longer may have others decide meanwhile. */
const oneStep = 1000;
const unread = 'you asked for this negotiation at the same time, and nothing was said: read it before you decide, or give a referenceId';

/** Read the definitions from the broker. */
export async function negotiationTools(o: ToolsOptions): Promise<NegotiationTools> {
  const rpc = rpcOf(o);
  const hello = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: '@parley-asp/sdk', version: '0' } };
  const { instructions } = (await patiently(() => rpc('initialize', hello), tries)) as { instructions: string };
  const listed = (await patiently(() => rpc('tools/list', {}), tries)) as { tools: ListedTool[] };
  const tools = listed.tools.map((t): Tool => ({
    name: t.name, description: t.description, parameters: t.inputSchema, reads: t.annotations?.readOnlyHint ?? false,
  }));
  const reading = new Map<unknown, { count: number; began: number }>(); // by negotiation
  return {
    instructions,
    tools,
    openai: () => tools.map(({ name, description, parameters }) => ({ type: 'function', function: { name, description, parameters } })),
    anthropic: () => tools.map(({ name, description, parameters }) => ({ name, description, input_schema: parameters })),
    async call(name, args, { signal } = {}) {
      const tool = tools.find((t) => t.name === name);
      if (!tool) throw new ParleyError(`no tool ${name}`);
      // The broker makes a repeat of an answer the same act only if the call names what it answers.
      const again = tool.reads || name !== 'respond_to_negotiation' || 'referenceId' in args;
      const id = args['negotiationId'];
      const now = reading.get(id);
      const answers = !again && !('ifHead' in args) && /^(accept|reject|counter|clarify)$/i.test(String(args['action']));
      if (answers && now && performance.now() - now.began < oneStep) return JSON.stringify({ success: false, code: 'chain_conflict', error: unread });
      const asked = again && !tool.reads ? { idempotencyKey: crypto.randomUUID(), ...args } : args;
      if (tool.reads) reading.set(id, { count: (now?.count ?? 0) + 1, began: performance.now() });
      try {
        const result = (await patiently(() => rpc('tools/call', { name, arguments: asked }, signal), again ? tries : 1, signal)) as { content: { type: string; text?: string }[] };
        return result.content.map((part) => part.text ?? '').join('\n');
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
        return JSON.stringify({ success: false, error: 'no answer: read the negotiation before you say it again' });
      } finally {
        if (tool.reads && --reading.get(id)!.count === 0) reading.delete(id);
      }
    },
  };
}

type Rpc = (method: string, params: Record<string, unknown>, signal?: AbortSignal) => Promise<unknown>;

function rpcOf(o: ToolsOptions): Rpc {
  const url = `${httpUrl(o.url ?? 'http://127.0.0.1:8080')}/mcp${o.everything ? '?tools=all' : ''}`;
  let id = 0;
  return async (method, params, signal) => {
    signal?.throwIfAborted();
    let answer: Response;
    let text: string;
    const headers: Record<string, string> = { Authorization: `Bearer ${o.token}`, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
    const trace = traceOf(o.traceparent);
    if (trace) headers['traceparent'] = trace;
    try {
      answer = await fetch(url, {
        method: 'POST',
        headers,
        body: JSON.stringify({ jsonrpc: '2.0', id: ++id, method, params }),
        signal: AbortSignal.any([AbortSignal.timeout(90_000), ...(signal ? [signal] : [])]),
      });
      text = await answer.text();
    } catch {
      signal?.throwIfAborted();
      throw new NoAnswer(`${method}: no answer`);
    }
    if (answer.status === 401) throw new Unauthorized('the token is missing, wrong, expired or removed');
    if ([429, 502, 503, 504].includes(answer.status)) throw new NoAnswer(`${method} is answered ${answer.status}`);
    if (answer.headers.get('content-type')?.startsWith('text/event-stream')) {
      text = text.split('\n').findLast((line) => line.startsWith('data:'))?.slice(5) ?? '{}';
    }
    const reply = parsed(text) as { result?: unknown; error?: { message?: string } };
    if (reply.result === undefined) throw new ParleyError(`${method}: ${reply.error?.message ?? answer.status}`);
    return reply.result;
  };
}

function parsed(text: string): object {
  try {
    return JSON.parse(text) as object;
  } catch {
    return {};
  }
}

async function patiently(act: () => Promise<unknown>, most: number, signal?: AbortSignal): Promise<unknown> {
  for (let n = 1; ; n++) {
    try {
      return await act();
    } catch (error) {
      if (!(error instanceof NoAnswer) || n >= most) throw error;
      const pause = Math.min(200 * 2 ** n, 10_000) * (0.5 + Math.random() / 2);
      await new Promise<void>((resolve) => {
        const done = (): void => (clearTimeout(timer), signal?.removeEventListener('abort', done), resolve());
        const timer = setTimeout(done, pause);
        signal?.addEventListener('abort', done);
      });
    }
  }
}
