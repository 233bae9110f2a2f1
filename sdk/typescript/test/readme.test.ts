/** The package as it is published, in an empty folder: the program of README.md compiles there, and runs as it is written. */

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { agent, answer } from '../src/index.js';
import { Broker, Human } from '../src/testing.js';
import { BUYER, COMPLIANCE, Cups, seller } from './agents.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

test('the program of README.md, with the published package', async () => {
  const [, program] = /```ts\n([^]*?)```/.exec(await readFile(join(root, 'README.md'), 'utf8'))!;
  const dir = await mkdtemp(join(tmpdir(), 'parley-readme-'));
  const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', dir], { cwd: root });
  await writeFile(join(dir, 'package.json'), '{"type": "module", "private": true}');
  await writeFile(join(dir, 'buyer.ts'), program!);
  const packages = [`./${stdout.trim()}`, 'zod@4.6.7', 'typescript@5.9.3', '@types/node@20'];
  await run('npm', ['install', '--no-audit', '--no-fund', '--silent', ...packages], { cwd: dir });
  const strict = ['--strict', '--target', 'es2022', '--module', 'nodenext', '--lib', 'es2023,dom,esnext.disposable', '--rootDir', '.'];
  await run('npx', ['--no-install', 'tsc', ...strict, 'buyer.ts'], { cwd: dir }).catch((error: { stdout: string }) => assert.fail(error.stdout));
  await using broker = await Broker.start();
  await using sells = seller({ url: broker.url }, 95).start();
  await using colleague = agent({ url: broker.url, token: COMPLIANCE, terms: Cups })
    .onCheck((deal) => answer(deal.check!, { assessment: 'fine' }))
    .start();
  await using alice = new Human(broker, 'human://acme.com/alice');
  const child = spawn(process.execPath, ['buyer.js'], { cwd: dir, env: { ...process.env, PARLEY_URL: broker.url, PARLEY_TOKEN: BUYER } });
  let said = '';
  for (const out of [child.stdout, child.stderr]) out.on('data', (data) => (said += String(data)));
  const over = new Promise((resolve) => child.on('exit', resolve));
  await alice.decides('approved');
  await over;
  assert.equal(said, 'completed 95\n');
  assert.ok(sells && colleague);
  await rm(dir, { recursive: true });
});
