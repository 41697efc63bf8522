// SPDX-License-Identifier: Apache-2.0

// Package grpclimit limits the calls that reach a gRPC server, and paces the calls of a gRPC client.
//
//	limited, err := grpclimit.New(limiter, grpclimit.Config{})
//	…
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(limited.Unary()),
//		grpc.ChainStreamInterceptor(limited.Stream()),
//	)
//
// # Status codes
//
// An allowed call goes to its handler, immediately or, with a leaky bucket or [Config.MaxWait], after a wait. A
// denied call ends with one of these status codes:
//
//   - RESOURCE_EXHAUSTED if it came too early, with the exact wait in google.rpc.RetryInfo; without RetryInfo if
//     it costs more than the limit can ever allow. google.rpc.QuotaFailure lists the limits that denied the call.
//   - PERMISSION_DENIED if it lacks a required attribute (on_missing: deny). Waiting does not help.
//   - UNAVAILABLE if the store is unavailable and a rule fails closed. Rules that fail open let the call pass.
//
// Trailers contain ratelimit-policy and ratelimit in the format of the RateLimit header fields. A denial also has
// x-ratelimit-reason, and grpc-retry-pushback-ms, which makes gRPC's own retries wait long enough. They are not
// headers, because headers would commit the call, and gRPC does not retry committed calls.
//
// [Config.Denied] replaces the status, and [Config.Exempt] exempts calls.
//
// Status and trailers never contain bucket keys. Shadow rules have no effect that clients can see.
//
// # Attributes
//
//	path            the full method: /package.Service/Method
//	method          POST, as for every gRPC call
//	host            the authority, in lower case and without its port
//	header:NAME     the value of that metadata key; for a key that ends
//	                in -bin its bytes, decoded
//	cookie:NAME     as in the cookie metadata
//	ip:address      the peer's address or, behind trusted proxies, the client's
//	jwt:, custom    from [Config.Attribute]
//
// If metadata or a cookie that a rule reads occurs twice, the call fails with InvalidArgument. The handler could
// read a different value than the rule.
//
// There are no query: attributes. Clients control metadata: never limit by header:x-forwarded-for, and use other
// keys only if they are verified. A gateway in front, such as grpc-gateway, is one peer for all its clients: add
// it to [Config.TrustedProxies].
//
// # Streams
//
// A stream is one call, decided when it starts. [Config.PerMessage] also limits every message that it receives,
// except the first, which the call has paid for. A denied message is lost and ends the stream: RecvMsg then
// always returns the error that the handler should return.
//
// # Charge by the response
//
// Limits with charge_on, or with a cost in the response, are settled before the status of a call is sent. The outcome is
// the status code of the handler, or INTERNAL if it panics. Costs come from the header or trailer metadata. Sizes are
// those of the messages in protobuf; other messages keep the cost that was charged on arrival. If the client cancels, or
// its deadline passes, before anything was sent, the charge stays. So do the charges of [Config.PerMessage]. In the
// handler of such a call, grpc.SetSendCompressor and grpc.ClientSupportedCompressors return an error.
//
// # Clients
//
// A [ClientInterceptor] waits for its own limiter before it sends a call, and obeys the limits of servers: see
// [NewClient].
package grpclimit
