/** Agreements: the vectors, nonsense, and each single change judged as `parley agreement verify` judges it. */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { verifyAgreement, type AgreementReport } from '../src/agreement.js';
import { Broker } from '../src/testing.js';

interface Case {
  name: string;
  broker: string;
  logKey: string;
  keys?: Record<string, string>;
  document: Record<string, unknown>;
  proves?: string;
  redacted?: string[];
  refused?: string[];
}

const cases = JSON.parse(await readFile(fileURLToPath(new URL('../../../../test/vectors/agreements.json', import.meta.url)), 'utf8')) as Case[];
const verified = async (c: Case, document: unknown): Promise<AgreementReport> => verifyAgreement(JSON.stringify(document), c);

test('the vectors', async () => {
  assert.ok(cases.length > 10);
  for (const c of cases) {
    const report = await verified(c, c.document);
    if (c.refused) assert.ok(report.faults.some((f) => c.refused!.includes(f.member)), `${c.name}: ${JSON.stringify(report.faults)}`);
    else assert.deepEqual(report, { faults: [], proves: c.proves, redacted: c.redacted ?? [], logged: c.logKey !== '', signed: report.signed }, c.name);
  }
});

test('nonsense is a fault, or proves less; nothing throws', async () => {
  for (const c of cases.slice(0, 3)) {
    for (const name of Object.keys(c.document)) {
      for (const kind of [undefined, null, 7, 'x', [], {}, { x: {} }, [[[]]]]) {
        const report = await verified(c, { ...c.document, [name]: kind });
        const less = ['signatures', 'evidence'].includes(name) && report.proves === 'digests';
        assert.ok(report.faults.length > 0 || less, `${c.name} ${name} ${JSON.stringify(kind)}`);
      }
    }
  }
  for (const nonsense of ['', '[', '[]', '7', '{"a":1,"a":1}', '['.repeat(100000)]) assert.ok((await verifyAgreement(nonsense)).faults.length > 0);
});

type Step = string | number;

/** Where the values of a document are. */
function* places(value: unknown, path: Step[] = []): Generator<Step[]> {
  if (typeof value !== 'object' || value === null) return;
  for (const [step, member] of Array.isArray(value) ? value.entries() : Object.entries(value)) {
    yield [...path, step];
    yield* places(member, [...path, step]);
  }
}

/** Documents that differ from this one in one value: it is another, or not there. */
function* changes(document: object): Generator<{ path: Step[]; changed: object }> {
  for (const path of places(document)) {
    for (const takes of [false, true]) {
      const changed = structuredClone(document);
      let parent = changed as Record<Step, unknown>;
      for (const step of path.slice(0, -1)) parent = parent[step] as Record<Step, unknown>;
      const step = path.at(-1)!;
      const was = parent[step];
      if (takes && Array.isArray(parent)) parent.splice(Number(step), 1);
      else if (takes) delete parent[step];
      else if (typeof was === 'string') parent[step] = was.slice(0, -1) + (was.endsWith('A') ? 'B' : 'A');
      else if (typeof was === 'number') parent[step] = was + 1;
      else continue;
      yield { path, changed };
    }
  }
}

test('a change is a fault here exactly if it is one there', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'parley-agreements-'));
  const there = async (n: number, c: Case, document: object): Promise<boolean> => {
    const file = join(folder, `${n}.json`);
    await writeFile(file, JSON.stringify(document));
    const flags = ['--broker-key', c.broker, '--log-key', c.logKey];
    return new Promise((answer) => execFile(Broker.program(), ['agreement', 'verify', file, ...flags], (error) => answer(error === null)));
  };
  try {
    const asked = cases.slice(0, 3).flatMap((c) => [...changes(c.document)].map((change) => ({ c, ...change })));
    assert.ok(asked.length > 200);
    let next = 0;
    await Promise.all(Array.from({ length: 4 }, async () => {
      while (next < asked.length) {
        const n = next++;
        const { c, path, changed } = asked[n]!;
        const { faults } = await verified(c, changed);
        assert.equal(faults.length === 0, await there(n, c, changed), `${c.name} ${path.join('/')}: ${JSON.stringify(faults)}`);
      }
    }));
  } finally {
    await rm(folder, { recursive: true });
  }
});
