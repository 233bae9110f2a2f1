// What openapi-typescript makes of /openapi.json is narrowed by the performative, without a cast:
// languages_test.go has tsc --strict compile this.
import type { components, paths } from "./parley.ts";

type Schemas = components["schemas"];

// Every face has one message: an entry of the transcript, of the news and of frames.
export function said(entry: Schemas["Entry"]): string {
  switch (entry.performative) {
    case "PROPOSE":
      return `${entry.content.body.proposalId}: ${entry.content.body.subject}`;
    case "COUNTER":
      return `${entry.content.body.proposalId} instead of ${entry.content.body.referenceId}`;
    case "ACCEPT":
      return entry.content.body.referenceId;
    case "REJECT":
      return entry.content.body.retryable ? entry.content.body.code : entry.content.body.reason;
    case "ESCALATE":
      return entry.content.body.urgency;
    default:
      return entry.performative;
  }
}

export function received(frame: Schemas["ServerFrame"]): string {
  return frame.type === "message" ? said(frame.envelope) : frame.type;
}

type Reply<Path extends keyof paths> = paths[Path] extends { get: { responses: { 200: { content: { "application/json": infer T } } } } } ? T : never;

export function read(page: Reply<"/v1/asp/sessions/{sessionId}/messages">, deal: Reply<"/v1/asp/sessions/{sessionId}/snapshot">): string[] {
  return [...page.messages, ...(deal.news ?? [])].map(said);
}

// A row of a turn's history is an entry in short.
export function rows(turn: Schemas["Turn"]): string[] {
  return (turn.history ?? []).map((row) => (row.performative === "PROPOSE" ? row.body.subject : `${row.from} ${row.at}`));
}

// A move becomes an act once it is filled.
export function act(deal: Schemas["Snapshot"], terms: Schemas["Terms"]): Schemas["Act"] | undefined {
  for (const move of deal.moves) {
    if (move.performative === "COUNTER" && move.body.proposalId !== undefined && move.body.referenceId !== undefined) {
      const { proposalId, referenceId } = move.body;
      return { performative: "COUNTER", body: { proposalId, referenceId, terms } };
    }
  }
  return undefined;
}
