// SPDX-License-Identifier: Apache-2.0

// Package grpclimit limits the calls that reach a gRPC server, and paces those
// that a gRPC client makes.
//
//	limited, err := grpclimit.New(limiter, grpclimit.Config{})
//	…
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(limited.Unary()),
//		grpc.ChainStreamInterceptor(limited.Stream()),
//	)
//
// # What a server answers
//
// A call that is allowed goes on to its handler, at once or, under a leaky bucket
// or [Config.MaxWait], when its turn has come. One that is denied ends with
//
//   - RESOURCE_EXHAUSTED where it came too early, with google.rpc.RetryInfo, which
//     has the exact wait; without, where it costs more than the limit can ever
//     admit. google.rpc.QuotaFailure names the limits that denied;
//   - PERMISSION_DENIED where it lacks an attribute that a rule insists on
//     (on_missing: deny), which waiting does not mend;
//   - UNAVAILABLE where the store could not answer and a rule fails closed. Rules
//     that fail open let the call pass.
//
// Trailers say the rest: ratelimit-policy and ratelimit as the RateLimit header
// fields do, x-ratelimit-reason on a denial, and grpc-retry-pushback-ms, which
// makes the retries that gRPC does by itself wait as long as they must. They are
// trailers, never headers: headers would commit a call that then fails, and no
// client would retry it.
//
// [Config.Denied] replaces the status, and [Config.Exempt] exempts calls.
//
// Status and trailers never name a bucket's key. Shadow rules change nothing that a client sees.
//
// # What a policy sees
//
//	path            the full method: /package.Service/Method
//	method          POST, as of every gRPC call
//	host            the authority, in lower case and without its port
//	header:NAME     the value of that metadata key; of one that ends in
//	                -bin its bytes, decoded
//	cookie:NAME     as the cookie metadata has it
//	ip:address      the peer's or, behind trusted proxies, its client's
//	jwt:, custom    what [Config.Attribute] supplies
//
// Metadata or a cookie that a rule reads and that occurs twice is answered with
// InvalidArgument: the handler could read another value than the rule.
//
// There are no query: attributes. Metadata is written by clients: never limit by
// header:x-forwarded-for, and by other keys only where something has verified
// them. A gateway in front, such as grpc-gateway, is one peer for all of its
// clients: name it in [Config.TrustedProxies].
//
// # Streams
//
// A stream is one call, decided when it starts. With [Config.PerMessage] every
// message that it receives is, too, except for the first, which the call has
// paid for. A denied message is lost and the stream is over: what the handler
// gets from RecvMsg, from then on, is the error that it should return.
//
// # Clients
//
// A [ClientInterceptor] waits for its own limiter before it sends, and does what
// servers say: see [NewClient].
package grpclimit
