/** The codes of a refusal: those of the broker, a class each. */

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';

import * as sdk from '../src/index.js';
import { codes, Refusal, refusalOf } from '../src/errors.js';

test('each code of the broker has its class', async () => {
  const source = await readFile(new URL('../../../../session/refusal.go', import.meta.url), 'utf8');
  const broker = [...source.matchAll(/^\s+\w+\s+(?:Code\s+)?=\s*"([a-z_]+)"/gm)].map(([, code]) => code!);
  assert.ok(broker.includes('malformed') && broker.includes('unavailable'), source);
  assert.deepEqual([...codes].sort(), broker.sort());
  const classes = new Set<unknown>();
  for (const code of broker) {
    const refused = refusalOf({ code, message: 'why', details: { allowed: ['CLOSE'] }, retryable: true }, 2);
    assert.ok(refused instanceof Refusal && refused.constructor !== Refusal, code);
    assert.equal((sdk as Record<string, unknown>)[refused.name], refused.constructor);
    assert.deepEqual([refused.code, refused.reason, refused.retryable, refused.retryAfter, refused.allowed], [code, 'why', true, 2, ['CLOSE']]);
    classes.add(refused.constructor);
  }
  assert.equal(classes.size, broker.length);
});

test('a code of a newer broker is a refusal', () => {
  for (const code of ['brand_new', 'constructor', '']) {
    const refused = refusalOf({ code, message: 'why' });
    assert.deepEqual([refused.constructor, refused.code], [Refusal, code]);
  }
});
