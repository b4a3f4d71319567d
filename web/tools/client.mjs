// Writes src/api/schema.d.ts from the committed docs/openapi.json.
import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const source = new URL("../../docs/openapi.json", import.meta.url);
const made = await openapiTS(JSON.parse(await readFile(source, "utf8")), { alphabetize: true });
await writeFile(new URL("../src/api/schema.d.ts", import.meta.url), `// Written by \`npm run client\` from openapi.json; do not edit.\n${astToString(made)}`);
