/** Evidence: the vectors, and each single change judged as `parley evidence verify` judges it. */

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { verifyEvidence, type EvidenceBundle, type EvidenceReport, type EvidenceTrust } from '../src/evidence.js';
import { verifyReceipt } from '../src/receipt.js';

interface Case {
  name: string;
  broker: string;
  logKey: string;
  receiptsKey: string;
  bundle: EvidenceBundle;
  logged: number;
  withheld: number;
  unproven?: string[];
  refused?: string[];
}

const cases = JSON.parse(await readFile(fileURLToPath(new URL('../../../../test/vectors/evidence.json', import.meta.url)), 'utf8')) as Case[];
const verified = async ({ broker, logKey, receiptsKey }: Case, bundle: unknown): Promise<EvidenceReport> =>
  verifyEvidence(new TextEncoder().encode(JSON.stringify(bundle)), { broker, logKey, receiptsKey });

test('the vectors', async () => {
  assert.ok(cases.length > 6);
  for (const c of cases) {
    const { faults, logged, withheld, claimed } = await verified(c, c.bundle);
    if (c.refused) assert.ok(faults.some((f) => c.refused!.includes(f.member)), `${c.name}: ${JSON.stringify(faults)}`);
    else assert.deepEqual({ faults, logged, withheld, claimed }, { faults: [], logged: c.logged, withheld: c.withheld, claimed: c.withheld > 0 ? ['/disputes/0'] : [] }, c.name);
  }
});

test('what is not given is taken from the bundle; what is given is another’s', async () => {
  const c = cases[0]!;
  const report = await verifyEvidence(c.bundle);
  assert.deepEqual({ faults: report.faults, logged: report.logged, owed: report.bundle?.obligations }, { faults: [], logged: 0, owed: c.bundle.obligations });
  const buyer = c.bundle.obligations[1]!.party;
  const given: [EvidenceTrust, string][] = [
    [{ broker: 'UC3SKXRAI3DPYBP2ECEGWSQDBWYRSOCNFTUNDAMXAFTS5BO2FTZZSG4F' }, '/broker'],
    [{ logKey: c.logKey.replace('parley.example', 'another.example') }, '/ended'],
    [{ receiptsKey: c.receiptsKey.replace('MCowBQYDK2VwAyEA', 'MCowBQYDK2VwAyEB') }, '/receipts/key'],
    [{ receiptsKey: 'none' }, '/receipts/key'],
    [{ keys: { [buyer]: c.broker } }, '/agreements/0/evidence/acceptance'],
  ];
  for (const [trust, at] of given) {
    const { faults } = await verifyEvidence(c.bundle, trust);
    assert.ok(faults.some((f) => f.member === at), `${at}: ${JSON.stringify(faults)}`);
  }
});

test('nonsense is a fault; nothing throws', async () => {
  const kinds = [undefined, null, 7, -1, 'x', true, [], {}, { x: {} }, [{}], [[[]]], [null]];
  for (const c of cases.filter(({ name }) => ['delivered', 'redacted'].includes(name))) {
    for (const [name, was] of Object.entries(c.bundle)) {
      for (const kind of kinds) {
        if (JSON.stringify(kind) === JSON.stringify(was) || (c.withheld > 0 && name === 'disputes' && JSON.stringify(kind) === '[]')) continue;
        assert.ok((await verified(c, { ...c.bundle, [name]: kind })).faults.length > 0, `${c.name} ${name} ${JSON.stringify(kind)}`);
      }
    }
    assert.ok((await verified(c, { ...c.bundle, more: 1 })).faults.length > 0);
  }
  const nonsense = ['', '[', '[]', '7', '{"a":1,"a":1}', '['.repeat(100000), '{"format":"parley-evidence/1"}'];
  for (const text of nonsense) assert.ok((await verifyEvidence(text)).faults.length > 0);
});

test('a receipt is one spelling of bytes, each of which counts', async () => {
  const { ended, receipts } = cases[0]!.bundle;
  const receipt = Buffer.from(receipts!.session!, 'base64');
  const check = async (bytes: Uint8Array): Promise<void> => verifyReceipt(bytes, receipts!.key, ended!.leaf, ended!.index, ended!.checkpoint);
  await check(receipt);
  const changed = [...receipt.keys()].flatMap((i) => [1, 32].map((bit) => Uint8Array.from(receipt, (b, n) => (n === i ? b ^ bit : b))));
  const others = [receipt.subarray(1), receipt.subarray(0, -1), [...receipt, 0], [], [0x9b, ...Array<number>(8).fill(0xff)], Array<number>(99).fill(0xc6)];
  for (const other of [...changed, ...others]) await assert.rejects(check(Uint8Array.from(other)), { name: 'ProofError' });
});

type Step = string | number;

/** Where the values of a bundle are; entries but the last are changed as a whole. */
function* places(value: unknown, last: string, path: Step[] = []): Generator<Step[]> {
  if (typeof value !== 'object' || value === null || ('integrity' in value && path.join('/') !== last)) return;
  for (const [step, member] of Array.isArray(value) ? value.entries() : Object.entries(value)) {
    yield [...path, step];
    yield* places(member, last, [...path, step]);
  }
}

/** Bundles that differ from this one in one value, with the name of the change (test/vectors/README.md). */
function* changes(bundle: EvidenceBundle): Generator<[string, object]> {
  for (const path of places(bundle, `transcript/${bundle.transcript.length - 1}`)) {
    for (const how of ['gone', 'other']) {
      const changed = structuredClone(bundle);
      let parent = changed as unknown as Record<Step, unknown>;
      for (const step of path.slice(0, -1)) parent = parent[step] as Record<Step, unknown>;
      const step = path.at(-1)!;
      const was = parent[step];
      if (how === 'gone' && Array.isArray(parent)) parent.splice(Number(step), 1);
      else if (how === 'gone') delete parent[step];
      else if (typeof was === 'string') parent[step] = was.slice(0, -1) + (was.endsWith('A') ? 'B' : 'A');
      else if (typeof was === 'number') parent[step] = was + 1;
      else continue;
      yield [`${how} ${path.map((s) => `/${String(s).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')}`, changed];
    }
  }
}

test('a change is a fault here exactly if it is one there', async () => {
  let tried = 0;
  for (const c of cases.filter(({ unproven }) => unproven)) {
    const accepted: string[] = [];
    for (const [name, changed] of changes(c.bundle)) {
      tried++;
      if ((await verified(c, changed)).faults.length === 0) accepted.push(name);
    }
    assert.deepEqual(accepted.sort(), [...c.unproven!].sort(), c.name);
  }
  assert.ok(tried > 600);
});
