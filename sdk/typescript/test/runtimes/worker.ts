/** The negotiation as a Worker. */

import { negotiated, type Told } from './negotiated.js';

export default {
  fetch: async (request: Request): Promise<Response> => new Response(await negotiated((await request.json()) as Told)),
};
