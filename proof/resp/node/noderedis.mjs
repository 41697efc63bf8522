// SPDX-License-Identifier: Apache-2.0

import { createClient } from "redis";

export async function connect(options) {
	const client = createClient({
		username: options.user,
		password: options.password,
		RESP: options.resp,
		socket: {
			host: options.host,
			port: options.port,
			tls: Boolean(options.authority),
			ca: options.authority,
			reconnectStrategy: () => 20,
		},
	});
	const failure = new Promise((_, reject) => client.on("error", reject));
	failure.catch(() => {});
	await Promise.race([client.connect(), failure]);
	return {
		// node-redis sends the commands of one turn of the event loop in one write.
		pipeline: commands => Promise.all(commands.map(command => client.sendCommand(command).catch(err => err))),
		close: () => client.close(),
	};
}
