/** The vectors that all SDKs share (test/vectors): what is accepted, and what is refused. */

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { canonical, uuid7Of } from '../src/json.js';
import { ProofError, verifyConsistency, verifyInclusion } from '../src/publiclog.js';
import { shown } from '../src/seal.js';
import { BrokerKeysError, openSealed, signedBy, verifyTranscript, type Expect, type KeyRecord, type SealedParts } from '../src/verify.js';
import { Forged, verifyCall } from '../src/wakeup.js';

const vectors = fileURLToPath(new URL('../../../../test/vectors/', import.meta.url));
const read = async <T>(file: string): Promise<T> => JSON.parse(await readFile(`${vectors}${file}.json`, 'utf8')) as T;

interface Case {
  name: string;
  refused?: unknown;
}

test('message ids', async () => {
  for (const c of await read<{ sessionId: string; head: string; performative: string; body: Record<string, unknown>; canonical: string; messageId: string }[]>('messageids')) {
    const parts = [c.sessionId, c.head, c.performative, shown(c)];
    assert.deepEqual([canonical(parts), await uuid7Of(...parts)], [c.canonical, c.messageId]);
  }
});

test('envelopes', async () => {
  for (const c of await read<(Case & { key: string; envelope: string; signed?: string })[]>('envelopes')) {
    if (c.refused === 'malformed') continue; // a member twice, which transcripts have too
    const envelope = JSON.parse(c.envelope) as { integrity: { signature?: string } };
    const { signature = '', ...integrity } = envelope.integrity;
    const signed = canonical({ ...envelope, integrity });
    assert.equal(await signedBy(c.key, signed, signature), c.refused === undefined, c.name);
    if (!c.refused) assert.equal(signed, c.signed);
  }
});

test('histories of a broker\'s keys', async () => {
  for (const c of await read<(Omit<Case, 'refused'> & { broker: string; keys: KeyRecord[]; refused?: boolean })[]>('brokerkeys')) {
    const verified = verifyTranscript('', c.broker, { brokerKeys: c.keys });
    if (c.refused) await assert.rejects(verified, BrokerKeysError, c.name);
    else assert.deepEqual((await verified).map((f) => f.rule), ['length'], c.name);
  }
});

test('transcripts', async () => {
  type Transcript = Case & {
    broker: string; brokerKeys?: KeyRecord[]; sessionId: string; head?: string; length?: number; entries: string[];
    sealed?: Record<string, SealedParts>; opened?: Record<string, object>;
  };
  for (const c of await read<Transcript[]>('transcripts')) {
    const expect: Expect = { session: c.sessionId, ...(c.head ? { head: c.head } : {}), ...(c.length ? { length: c.length } : {}), ...(c.brokerKeys ? { brokerKeys: c.brokerKeys } : {}) };
    const faults = await verifyTranscript(c.entries.join('\n'), c.broker, expect);
    const found: object[] = faults.map(({ line, rule }) => ({ line, rule }));
    for (const [n, text] of c.entries.entries()) {
      const entry = JSON.parse(text) as { messageId: string; content: { body: Record<string, unknown> } };
      const parts = c.sealed?.[entry.messageId];
      if (!parts) continue;
      try {
        assert.deepEqual(await openSealed(entry.content.body, parts), c.opened?.[entry.messageId]);
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        found.push({ line: n + 1, rule: 'sealed' });
      }
    }
    assert.deepEqual(found, c.refused ?? [], c.name);
  }
});

test('webhooks', async () => {
  for (const c of await read<(Case & Record<string, string> & { now: number })[]>('webhooks')) {
    const headers = new Headers(['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name): [string, string] => [name, c[name]!]));
    const verified = verifyCall(c['secret']!, headers, c['body']!, Number(c.now) * 1000);
    if (c.refused) await assert.rejects(verified, Forged, c.name);
    else assert.equal((await verified).type, 'session.news');
  }
});

test('the public log', async () => {
  interface Log {
    key: string;
    inclusion: (Case & { leaf: object; index: number; proof: string[]; checkpoint: string })[];
    consistency: (Case & { old: string; new: string; proof: string[] })[];
  }
  const log = await read<Log>('publiclog');
  const holds = async (c: Case, proof: Promise<unknown>): Promise<void> => (c.refused ? assert.rejects(proof, ProofError, c.name) : void (await proof));
  for (const c of log.inclusion) await holds(c, verifyInclusion(c.leaf, c.index, c.proof, c.checkpoint, log.key));
  for (const c of log.consistency) await holds(c, verifyConsistency(c.old, c.new, c.proof, log.key));
  assert.ok(log.inclusion.length > 3 && log.consistency.length > 3);
});
