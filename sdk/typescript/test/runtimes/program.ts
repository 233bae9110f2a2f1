/** The negotiation as a program, for Node, Bun and Deno. */

import { negotiated, type Told } from './negotiated.js';

console.log(await negotiated(JSON.parse(process.env['TOLD']!) as Told));
