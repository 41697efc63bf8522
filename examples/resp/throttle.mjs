// SPDX-License-Identifier: Apache-2.0

// This program limits each user to 3 requests at once, then one per minute, with any Redis client. Start the server
// and the program:
//
//	mete serve --resp-listen 6380
//	npm install redis
//	node throttle.mjs redis://127.0.0.1:6380

import { createClient } from "redis";

const client = createClient({ url: process.argv[2], pingInterval: 60_000 });
client.on("error", err => console.error("mete:", err.message));
await client.connect();

async function allow(user) {
	const [limited, , remaining, retryAfter] = await client.sendCommand(["CL.THROTTLE", user, "2", "1", "60"]);
	return { allowed: limited === 0, remaining, retryAfter };
}

for (let request = 1; request <= 4; request++) {
	const { allowed, remaining, retryAfter } = await allow("kim");
	console.log(allowed ? `request ${request}: allowed, ${remaining} left` : `request ${request}: denied, retry in ${retryAfter} s`);
}
client.destroy();
