// SPDX-License-Identifier: Apache-2.0

import { Batch, GlideClient, Logger, ProtocolVersion } from "@valkey/valkey-glide";

Logger.init("error");

// Glide returns a map as an array of its entries.
function toObject(value) {
	if (!Array.isArray(value)) return value;
	if (value.length > 0 && value.every(entry => entry !== null && typeof entry === "object" && "key" in entry)) {
		return Object.fromEntries(value.map(({ key, value }) => [key, toObject(value)]));
	}
	return value.map(toObject);
}

export async function connect(options) {
	const client = await GlideClient.createClient({
		addresses: [{ host: options.host, port: options.port }],
		credentials: options.password && { username: options.user, password: options.password },
		protocol: options.resp === 2 ? ProtocolVersion.RESP2 : ProtocolVersion.RESP3,
		useTLS: Boolean(options.authority),
		requestTimeout: 20_000,
		advancedConfiguration: {
			connectionTimeout: 20_000,
			tlsAdvancedConfiguration: options.authority && { rootCertificates: options.authority },
		},
	});
	return {
		async pipeline(commands) {
			if (commands.length === 1) return [toObject(await client.customCommand(commands[0]).catch(err => err))];
			const batch = new Batch(false);
			for (const command of commands) batch.customCommand(command);
			return (await client.exec(batch, false)).map(toObject);
		},
		close: () => client.close(),
	};
}
