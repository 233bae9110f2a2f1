/** The verifier finds what Go's finds, in the vectors of session/transcript/testdata. */

import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { verifyTranscript, type Expect } from '../src/verify.js';

const vectors = fileURLToPath(new URL('../../../../session/transcript/testdata', import.meta.url));
const separator = '-- transcript.jsonl --\n';

test('each vector has the faults that it names', async () => {
  const names = (await readdir(vectors)).filter((name) => name.endsWith('.txtar'));
  assert.ok(names.length > 50);
  for (const name of names) {
    const bytes = await readFile(join(vectors, name));
    const at = bytes.indexOf(separator);
    const header = bytes.subarray(0, at).toString();
    const given = (key: string): string | undefined => new RegExp(`^${key}: (.*)$`, 'm').exec(header)?.[1];
    const expect: Expect = { allowUnsigned: /^allow-unsigned/m.test(header) };
    const [session, head, length] = ['expect-session', 'expect-head', 'expect-length'].map(given);
    if (session) expect.session = session;
    if (head) expect.head = head;
    if (length) expect.length = Number(length);
    const want = [...header.matchAll(/^fault: line (\d+), (\w+)$/gm)].map(([, line, rule]) => `${line} ${rule}`);
    const faults = await verifyTranscript(bytes.subarray(at + separator.length), given('broker')!, expect);
    assert.deepEqual(faults.map((f) => `${f.line} ${f.rule}`), want, `${name}: ${JSON.stringify(faults)}`);
  }
});
