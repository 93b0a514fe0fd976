// SPDX-License-Identifier: Apache-2.0
// A client of `etrace mcp` that uses the official SDKs: node mcp_client.mjs SDK COMMAND [ARGUMENT...]
//
// SDK is v1 (@modelcontextprotocol/sdk), or legacy or modern (the two ways of @modelcontextprotocol/client). The program
// lists the tools, calls some of them, cancels a call, and prints a line for each step. The packages are in NODE_PATH.

import { createRequire } from "node:module";
import { join } from "node:path";

const [sdk, command, ...args] = process.argv.slice(2);
const load = createRequire(join(process.env.NODE_PATH, "none.js"));
const name = sdk === "v1" ? "@modelcontextprotocol/sdk/client" : "@modelcontextprotocol/client";
const { Client } = load(sdk === "v1" ? `${name}/index.js` : name);
const { StdioClientTransport } = load(sdk === "v1" ? `${name}/stdio.js` : `${name}/stdio`);

const options = sdk === "modern" ? { versionNegotiation: { mode: { pin: "2026-07-28" } } } : {};
const client = new Client({ name: "test", version: "1.0.0" }, options);
client.onerror = (error) => console.log("error", error.message);

const call = (tool, given, how) =>
    sdk === "v1"
        ? client.callTool({ name: tool, arguments: given }, undefined, how)
        : client.callTool({ name: tool, arguments: given }, how);
const text = (result) => JSON.parse(result.content[0].text);

await client.connect(new StdioClientTransport({ command, args, env: process.env }));
console.log("server", client.getServerVersion().name);

const { tools } = await client.listTools();
console.log("tools", tools.map((tool) => tool.name).join(" "));
console.log("read only", tools.every((tool) => tool.annotations.readOnlyHint));

const nodes = await call("nodes", {});
console.log("nodes", text(nodes).rows.length > 0);

const both = await Promise.all([
    call("why", { process: "init" }),
    call("trace", { expression: "work:one/1 -> return", seconds: 20, limit: 2 }),
]);
console.log("why", text(both[0]).rows[0].name);
console.log("trace", text(both[1]).rows.filter((row) => row.type === "return").length);

const refused = await call("trace", { expression: "work:one(_) -> dump" });
console.log("refused", refused.isError, text(refused).error);

const unknown = await call("rm", {}).then(() => "answered", (error) => error.code);
console.log("unknown tool", unknown);

const abort = new AbortController();
const cancelled = call("trace", { expression: "work:two/2", seconds: 30 }, { signal: abort.signal });
setTimeout(() => abort.abort("enough"), 1000);
console.log("cancelled", await cancelled.then(() => "answered", () => "yes"));

console.log("explain", text(await call("explain", { expression: "lists:seq/2" })).rows.length > 1);
await client.close();
console.log("closed");
