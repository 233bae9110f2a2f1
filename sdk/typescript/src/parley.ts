#!/usr/bin/env node
/** `npx parley …` runs the program parley. */

import { spawnSync } from 'node:child_process';

import { program } from './program.js';

const { error, status, signal } = spawnSync(program(), process.argv.slice(2), { stdio: 'inherit' });
if (error) console.error(`parley: ${error.message}`);
if (signal) process.kill(process.pid, signal);
process.exitCode = status ?? 1;
