// Checks docs/asyncapi.yaml with AsyncAPI's own parser: node asyncapi.mjs FILE
import { readFileSync } from "node:fs";
import { Parser } from "@asyncapi/parser";

const { document, diagnostics } = await new Parser().parse(readFileSync(process.argv[2], "utf8"));
const faults = diagnostics.filter((d) => d.severity <= 1); // errors and warnings
for (const d of faults) console.error(`${d.path.join("/")}: ${d.message} (${d.code})`);
if (!document || faults.length > 0) process.exit(1);
console.log(`asyncapi.yaml: ${document.operations().all().length} operations, no faults`);
