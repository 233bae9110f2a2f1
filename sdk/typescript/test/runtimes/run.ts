/**
 * Runs the negotiation in Bun, Deno and workerd, which a folder has as packages of npm:
 *
 *     node dist-test/test/runtimes/run.js FOLDER/node_modules
 */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

import { Broker } from '../../src/testing.js';
import { BUYER, registered, SELLER } from '../agents.js';
import type { Told } from './negotiated.js';

interface Miniflare {
  dispatchFetch(url: string, init: { method: string; body: string }): Promise<Response>;
  dispose(): Promise<void>;
}

const packages = resolve(process.argv[2]!);
const run = promisify(execFile);
const here = fileURLToPath(new URL('.', import.meta.url));
const { Miniflare } = (await import(pathToFileURL(join(packages, 'miniflare/dist/src/index.js')).href)) as { Miniflare: new (options: object) => Miniflare };

await using broker = await Broker.start({ dev: false });
const told: Told = { url: broker.url, buyer: await registered(broker, BUYER), seller: await registered(broker, SELLER), key: '' };

const inProgram = (program: string, ...args: string[]) => async (key: string): Promise<string> => {
  const env = { ...process.env, TOLD: JSON.stringify({ ...told, key }), NO_COLOR: '1' };
  return (await run(program, [...args, join(here, 'program.js')], { env, timeout: 60_000 })).stdout.trim();
};

const inWorkerd = async (key: string): Promise<string> => {
  const worker = new Miniflare({ modules: true, script: await readFile(join(here, '../../worker.js'), 'utf8'), compatibilityDate: '2026-07-01' });
  try {
    return await (await worker.dispatchFetch('http://worker/', { method: 'POST', body: JSON.stringify({ ...told, key }) })).text();
  } finally {
    await worker.dispose();
  }
};

const runtimes = {
  Node: inProgram(process.execPath),
  Bun: inProgram(join(packages, '.bin/bun'), 'run'),
  Deno: inProgram(join(packages, '.bin/deno'), 'run', '--no-config', '--allow-net', '--allow-env', '--allow-read'),
  workerd: inWorkerd,
};
for (const [name, negotiates] of Object.entries(runtimes)) {
  assert.equal(await negotiates(name), 'completed 80', name);
  console.log(`${name}: two agents that sign for themselves agreed over HTTP`);
}
