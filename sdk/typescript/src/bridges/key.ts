import { canonical, digestOf } from '../json.js';

/**
 * The key of a session that a framework asks for: an id of the framework's, which another chat or step may have too, and the
 * input as JSON, which is all that the framework keeps of it.
 */
export async function keyOf(id: string, input: unknown): Promise<string> {
  const kept = JSON.stringify(input ?? null, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
  return `${id} ${await digestOf(new TextEncoder().encode(canonical(JSON.parse(kept))))}`;
}
