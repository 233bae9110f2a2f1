import { rawKey } from './sign.js';

/** Whether a key (`U…`) signed a text: `ed25519:` and 128 hex digits. @internal */
export async function signedBy(key: string, text: string, signature: string): Promise<boolean> {
  if (!/^ed25519:[0-9a-f]{128}$/.test(signature)) return false;
  const raw = Uint8Array.from(signature.slice(8).match(/../g)!, (hex) => parseInt(hex, 16));
  try {
    const verifier = await crypto.subtle.importKey('raw', Uint8Array.from(rawKey(key)), { name: 'Ed25519' }, false, ['verify']);
    return await crypto.subtle.verify({ name: 'Ed25519' }, verifier, raw, new TextEncoder().encode(text));
  } catch {
    return false;
  }
}
