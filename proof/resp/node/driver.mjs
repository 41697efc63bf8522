// SPDX-License-Identifier: Apache-2.0

// Runs commands of a Go test with one Node.js client. The first argument is the name of the client, the second one is
// JSON with the connection. The driver reads a JSON array of commands per line, and prints a line with their replies.
// Its first line reports whether the client is connected.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

// plain replaces the values that JSON does not have.
function plain(value) {
	switch (true) {
	case value instanceof Error:
		return { error: value.message };
	case typeof value === "bigint":
		return Number(value);
	case Buffer.isBuffer(value):
		return value.toString();
	case value instanceof Map:
		return Object.fromEntries([...value].map(([k, v]) => [plain(k), plain(v)]));
	case Array.isArray(value):
		return value.map(plain);
	case typeof value === "object" && value !== null:
		return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, plain(v)]));
	default:
		return value;
	}
}

function print(value) {
	process.stdout.write(JSON.stringify(value) + "\n");
}

const [name, connection] = process.argv.slice(2);
const options = JSON.parse(connection);
if (options.authority) options.authority = readFileSync(options.authority);

const { connect } = await import(`./${name}.mjs`);
let client;
try {
	client = await connect(options);
} catch (err) {
	print({ error: err.message });
	process.exit(0);
}
print({});

for await (const line of createInterface({ input: process.stdin })) {
	const commands = JSON.parse(line);
	try {
		print({ replies: (await client.pipeline(commands)).map(value => value instanceof Error ? plain(value) : { value: plain(value) }) });
	} catch (err) {
		print({ error: err.message });
	}
}
await client.close();
process.exit(0);
