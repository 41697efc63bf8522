// SPDX-License-Identifier: Apache-2.0

// Package proxy is a rate-limiting reverse proxy: the middleware of package httplimit in front of one upstream
// ([New]) or several ([NewRouted]).
//
// A denied request never reaches an upstream, and the proxy does not read its body. An admitted request has spent
// its tokens whatever the upstream does, even if it cannot be reached. Limits with charge_on, or with a cost in
// the response, are charged by the response that the client gets. It may be a response of the proxy itself.
//
// # Routing
//
// A [Route] selects the [Upstream] for a request by host and path. Of two servers of that upstream, drawn at
// random, the one with fewer requests in flight gets the request. For a while, the proxy skips a server that it
// cannot connect to. While [Proxy.Watch] runs, it also skips servers that fail their health checks. It retries a
// request on a second server only if nothing was sent to the first one. [Proxy.Stats] returns their state.
//
// # Streaming, WebSockets and gRPC
//
// Bodies stream in both directions at the same time. Their size is unlimited unless [Config.MaxBodyBytes] is set.
// The proxy forwards every write of the upstream immediately, so server-sent events work.
//
// WebSockets pass, as do the other protocols in [Config.Upgrades]. Only the request that opens the connection is
// limited. The proxy closes connections that are idle for [Config.UpgradeTimeout]. [Proxy.Drain] waits for open
// ones.
//
// Announced trailers pass in both directions, except request trailers that a server might trust, such as
// X-Forwarded-For. Up to a hundred informational responses per request pass. gRPC calls work if both sides speak
// HTTP/2: a [net/http.Server] needs TLS or its Protocols set, and upstreams need https or h2c in their URL.
// Hop-by-hop headers do not pass. Bodies are not decompressed.
//
// # Path and query
//
// The upstream receives the path that the policy evaluated, with "//", "." and ".." resolved. No client can be
// limited under one path and served another. For the same reason the proxy drops query parameters that cannot be
// parsed and header fields that Connection lists. It escapes "#" and spaces in a query, because some servers end
// the query there.
//
// A target without a path ("http:http://host/path", "*", CONNECT) gets a 400. So do invalid methods and hosts,
// which HTTP/2 lets through. If the URL of the server has a path, it precedes the request's path.
//
// # Headers
//
// An upstream with https and a name sees its own name in Host, other upstreams see the client's Host. [Config.RewriteHost]
// changes this. A request without a Host gets a 400.
//
// X-Forwarded-For is the address of the connection's peer. If the peer is a trusted proxy
// ([httplimit.Config.TrustedProxies]), the proxy appends the peer's address to the received list, and keeps the
// peer's X-Forwarded-Proto and X-Forwarded-Host. With another [httplimit.Config.ForwardedHeader], the list starts
// with the client's address from that field, because X-Forwarded-For may then come from the client.
//
// The proxy removes forwarding fields that clients send. It also removes Forwarded and the other fields that
// servers trust for the client, host, scheme or path, such as X-Real-IP, X-Forwarded-Prefix and X-Original-URL.
// From a trusted proxy they pass. doc/proxy.md lists all of them. Fields with "_" in their names are removed
// ([Config.UnderscoresInHeaders]).
//
// If a header field, query parameter or cookie that a rule reads occurs twice, the middleware responds with 400.
//
// mete's RateLimit header fields replace upstream fields of the same name, also in trailers and informational
// responses.
//
// # Errors
//
// Each error response has a problem body (RFC 9457) without any address:
//
//   - 400: the target, method or host is invalid, or servers interpret a value that a rule reads differently.
//   - 404: no route matches.
//   - 400, 408, 413: the request body is malformed, stalls, or is too large.
//   - 502: the upstream cannot be reached, or breaks off before its response begins.
//   - 503: no server is up, or the request asks for an upgrade after [Proxy.Drain]. The response has a
//     Retry-After, but unlike a denial no X-RateLimit-Reason.
//   - 504: an upstream timeout expired.
//
// If the upstream breaks off in the middle of a response, the proxy also breaks off the client's response.
package proxy
