// SPDX-License-Identifier: Apache-2.0

import { Redis } from "ioredis";

export async function connect(options) {
	const client = new Redis({
		host: options.host,
		port: options.port,
		username: options.user,
		password: options.password,
		tls: options.authority && { ca: options.authority },
		lazyConnect: true,
		maxRetriesPerRequest: 2,
		retryStrategy: () => 20,
	});
	const failure = new Promise((_, reject) => client.on("error", reject));
	failure.catch(() => {});
	await Promise.race([client.connect(), failure]);
	return {
		async pipeline(commands) {
			if (commands.length === 1) return [await client.call(...commands[0]).catch(err => err)];
			const pipeline = client.pipeline();
			for (const command of commands) pipeline.call(...command);
			return (await pipeline.exec()).map(([err, value]) => err ?? value);
		},
		close: () => client.quit(),
	};
}
