// SPDX-License-Identifier: Apache-2.0

// Package proxy is a reverse proxy that limits: the middleware of package
// httplimit in front of one upstream ([New]) or several ([NewRouted]).
//
// A request that is denied never reaches an upstream, and its body is not
// read. One that is admitted has spent its tokens whatever the upstream says of
// it, also where the upstream cannot be reached: nothing is refunded.
//
// # Where requests go
//
// A [Route] says by host and path which [Upstream] has a request; among the servers of
// that, the one with fewer requests in flight of two drawn at random has it. Servers that
// cannot be connected to are left out for a while, and while [Proxy.Watch] runs those
// whose health checks fail. A request is sent to a second server only where nothing of
// it was sent to the first. [Proxy.Stats] says how they are.
//
// # What passes
//
// Bodies stream in both directions, at the same time, of any size unless [Config.MaxBodyBytes]
// bounds them, and every write of the upstream is passed on at once (server-sent
// events work). WebSockets pass, and what else [Config.Upgrades] names; only the request that opens
// one is limited. One through which nothing goes for [Config.UpgradeTimeout] is closed, and
// [Proxy.Drain] waits for those that are open. Trailers that are announced pass in both directions (of requests, but for those
// that a server might believe, such as X-Forwarded-For), and up to a hundred
// informational answers to a request; calls of
// gRPC do, too, where both sides speak HTTP/2: servers of a [net/http.Server] do with TLS, or
// with its Protocols set, and upstreams with https or h2c in their URL. Hop-by-hop headers
// do not pass. Bodies are not decompressed.
//
// The upstream is asked for the path that the policy was asked about: with "//",
// "." and ".." resolved, so that no client is counted under one path and served
// another. Query parameters that cannot be parsed are dropped for the same
// reason, and so are header fields that Connection names; "#" and spaces in a query are
// escaped, where servers would take them for its end. A target without a path
// ("http:http://host/path", "*", CONNECT) is answered with 400, and so are methods and hosts
// that can be none, which HTTP/2 lets pass. The server's own path, if its URL has one,
// comes before it.
//
// # Headers
//
// The upstream sees the client's Host, or its own with [Config.RewriteHost]. A request
// without a Host is answered with 400.
//
// X-Forwarded-For is the address at the other end of the connection. If that is a
// trusted proxy ([httplimit.Config.TrustedProxies]), the address comes after the list of the proxy. Then
// X-Forwarded-Proto and -Host stay as the proxy sent them. Where the middleware believes
// it in another field ([httplimit.Config.ForwardedHeader]), the address comes after that of
// the client, as rules know it: X-Forwarded-For may then be the client's own. What a client sends
// in their place is removed, and so are Forwarded and the other fields that servers
// believe about the client, the host, the scheme or the path, such as X-Real-IP,
// X-Forwarded-Prefix and X-Original-URL; from a trusted proxy they pass. doc/proxy.md has
// a table of all. Fields with "_" in their names are removed ([Config.UnderscoresInHeaders]).
//
// A header field, query parameter or cookie that a rule reads and that occurs twice is
// answered with 400, by the middleware.
//
// RateLimit header fields of ours replace those of the same name that the
// upstream sends, also in trailers and informational answers.
//
// # Errors
//
// Each has a problem body (RFC 9457) that names no address:
//
//   - 400: the target, the method or the host is none, or a rule reads what servers
//     read differently.
//   - 404: no route leads anywhere.
//   - 400, 408, 413: the body of the request is broken, stands still, is too long.
//   - 502: the upstream cannot be reached, or breaks off before its answer begins.
//   - 503: no server is up, or a connection would be upgraded after [Proxy.Drain]. It has a
//     Retry-After, and unlike a denial no X-RateLimit-Reason.
//   - 504: the upstream lets a timeout pass.
//
// An answer that breaks off midway breaks off for the client, too.
package proxy
