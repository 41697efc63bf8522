// SPDX-License-Identifier: Apache-2.0

// Package proxy is a reverse proxy that limits: the middleware of package
// httplimit in front of an upstream server.
//
// A request that is denied never reaches the upstream, and its body is not
// read. One that is admitted has spent its tokens whatever the upstream says of
// it, also where the upstream cannot be reached: nothing is refunded.
//
// # What passes
//
// Bodies stream in both directions, of any size unless [Config.MaxBodyBytes]
// bounds them, and every write of the upstream is passed on at once (server-sent
// events work). WebSockets and other upgrades pass; only the request that opens
// one is limited. Trailers and informational answers pass. Hop-by-hop headers
// do not. Bodies are not decompressed.
//
// The upstream is asked for the path that the policy was asked about: with "//",
// "." and ".." resolved, so that no client is counted under one path and served
// another. Query parameters that cannot be parsed are dropped for the same
// reason, and so are header fields that Connection names. A target without a path
// ("http:http://host/path", or "*") is answered with 400. The upstream's own path, if
// its URL has one, comes before it.
//
// # Headers
//
// The upstream sees the client's Host, or its own with [Config.RewriteHost].
//
// X-Forwarded-For is the address of whoever opened the connection. If that is a
// proxy which the middleware trusts ([httplimit.Middleware.Trusts]), the address comes after those which the proxy sent, and
// X-Forwarded-Proto and -Host stay as the proxy sent them. What a client sends
// in their place is removed, and Forwarded likewise. Others that some servers
// believe, such as X-Real-IP, pass as they come: the upstream should not.
//
// RateLimit header fields of ours replace those of the same name that the
// upstream sends.
//
// # Errors
//
// An upstream that cannot be reached, or breaks off before its answer begins, is
// a 502; one that lets a timeout pass, a 504; a body above the bound, a 413: each
// with a problem body (RFC 9457). An answer that breaks off midway breaks off for
// the client, too.
package proxy
