/**
 * SHA-256 and Ed25519, by Node's own module where there is one, else by WebCrypto. WebCrypto hands each of these small
 * jobs to another thread, which costs more than the job.
 */

const pkcs8 = [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20]; // RFC 8410

interface NodeCrypto {
  createHash(name: string): { update(data: Uint8Array): { digest(): Uint8Array } };
  createPrivateKey(key: { key: Uint8Array; format: 'der'; type: 'pkcs8' }): object;
  sign(algorithm: null, data: Uint8Array, key: object): Uint8Array;
}

const host = globalThis as { process?: { getBuiltinModule?: (name: string) => NodeCrypto | undefined } };
const node = host.process?.getBuiltinModule?.('node:crypto');

type Bytes = Uint8Array<ArrayBuffer>;

export async function sha256(data: Bytes): Promise<Bytes> {
  return new Uint8Array(node ? node.createHash('sha256').update(data).digest() : await crypto.subtle.digest('SHA-256', data));
}

/** What signs with the key that a seed of 32 bytes makes. */
export async function ed25519(seed: Uint8Array): Promise<(data: Bytes) => Promise<Bytes>> {
  const der = Uint8Array.from([...pkcs8, ...seed]);
  if (node) {
    const key = node.createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
    return async (data) => new Uint8Array(node.sign(null, data, key));
  }
  const key = await crypto.subtle.importKey('pkcs8', der, { name: 'Ed25519' }, false, ['sign']);
  return async (data) => new Uint8Array(await crypto.subtle.sign({ name: 'Ed25519' }, key, data));
}
