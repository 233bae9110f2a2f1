import { canonical, digestOf } from '../json.js';

/** The key of a session that a framework asks for: an id of the framework's, which another chat or step may have too, and the input. */
export async function keyOf(id: string, input: unknown): Promise<string> {
  return `${id} ${await digestOf(new TextEncoder().encode(canonical(input ?? null)))}`;
}
