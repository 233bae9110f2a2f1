// The guard of this browser's key: a passkey of this device encrypts it (WebAuthn with
// the PRF extension), so that each use asks for the device's fingerprint, face or PIN.
// The browser keeps the ciphertext only.

const random = (n) => crypto.getRandomValues(new Uint8Array(n));
const info = new TextEncoder().encode('parley inbox key');

// possible resolves to whether this browser and this address can have a guard.
export async function possible() {
  if (!globalThis.PublicKeyCredential || /^[\d.]+$|:/.test(location.hostname)) return false; // an IP address has no passkeys
  return PublicKeyCredential.isUserVerifyingPlatformAuthenticatorAvailable().catch(() => false);
}

class Refused extends Error {}
const declined = (error) => {
  if (error instanceof Refused) throw error;
  throw new Refused('The key was not unlocked. Nothing was signed.');
};

// secret asks the authenticator for the AES key that belongs to a credential and a salt.
async function secret(credential, salt) {
  const answer = await navigator.credentials.get({ publicKey: {
    challenge: random(32), allowCredentials: [{ type: 'public-key', id: credential }], userVerification: 'required',
    extensions: { prf: { eval: { first: salt } } },
  } });
  const output = answer.getClientExtensionResults().prf?.results?.first;
  if (!output) throw new Refused('This authenticator cannot guard a key.');
  const material = await crypto.subtle.importKey('raw', output, 'HKDF', false, ['deriveKey']);
  return crypto.subtle.deriveKey({ name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info }, material, { name: 'AES-GCM', length: 256 }, false, ['encrypt', 'decrypt']);
}

// lock makes a passkey, and returns what is kept of a private key that can be exported.
export async function lock(privateKey) {
  try {
    const salt = random(32);
    const iv = random(12);
    const made = await navigator.credentials.create({ publicKey: {
      rp: { name: 'parley inbox' }, user: { id: random(16), name: 'parley inbox', displayName: 'parley inbox' }, challenge: random(32),
      pubKeyCredParams: [{ type: 'public-key', alg: -7 }, { type: 'public-key', alg: -8 }, { type: 'public-key', alg: -257 }],
      authenticatorSelection: { authenticatorAttachment: 'platform', userVerification: 'required', residentKey: 'discouraged' },
      extensions: { prf: {} },
    } });
    if (!made.getClientExtensionResults().prf?.enabled) throw new Refused('This device’s lock cannot guard a key.');
    const data = await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, await secret(made.rawId, salt), await crypto.subtle.exportKey('pkcs8', privateKey));
    return { credential: made.rawId, salt, iv, data };
  } catch (error) {
    return declined(error);
  }
}

// unlock returns the private key for one signature.
export async function unlock({ credential, salt, iv, data }) {
  try {
    const plain = await crypto.subtle.decrypt({ name: 'AES-GCM', iv }, await secret(credential, salt), data);
    return await crypto.subtle.importKey('pkcs8', plain, 'Ed25519', false, ['sign']);
  } catch (error) {
    return declined(error);
  }
}
