// SPDX-License-Identifier: Apache-2.0

// Package httpapi serves rate limit decisions over HTTP, for programs in any language and for gateways.
//
//	POST /v1/take       spend the request's tokens, or be denied
//	POST /v1/peek       same answer, but spend nothing
//	POST /v1/hold       take an estimate, and settle it later by its ID
//	POST /v1/settle     replace the estimate of a hold by the actual cost
//	POST /v1/release    settle a hold with 0
//	POST /v1/renew      make a hold expire later
//	POST /v1/refund     return the request's tokens (admin)
//	POST /v1/reset      refill every bucket of the request (admin)
//	POST /v1/explain    explain a decision (admin)
//	     /v1/overrides  exceptions from the policy (admin)
//	GET  /v1/top        most denied keys (admin)
//	GET  /v1/me         and rules, request, traffic, watch, violations, play: live data
//	                    for package dashboard (admin), see [Live]
//	POST /v1/reload     reload the policy (admin)
//	ANY  /v1/decision   decisions for gateways, such as nginx
//	GET  /livez         the process is alive
//	GET  /readyz        the store responds and the server accepts traffic
//	GET  /openapi.json  this API as OpenAPI 3.1
//
// doc/http.md describes requests and responses with examples; openapi.json describes every member. Go programs
// use package client.
//
// # Requests
//
// The body of a POST is a request, or a batch of up to [MaxBatch], as JSON of at most [MaxBodyBytes]. Each
// becomes a [mete.Request]. Unknown and duplicate members are rejected. The API normalizes paths, hosts and
// addresses in the same way as the other adapters, and rejects values that servers interpret differently.
//
// # Responses
//
// Package api has the response types. /v1/take and /v1/peek respond with 200 and an [api.Decision] for allowed
// and denied requests. Many HTTP clients would retry a 429 on their own, and each retry takes again. With
// ?status=429, a denial has the status 429 and a Retry-After, or 503 if the store is unavailable. A batch gets a
// 200 with all responses. A response without a decision is an [api.Problem].
//
// A denial because a required attribute is missing (on_missing: deny) has the reason missing_attribute and a null
// retry_after. Its status is never 403, which means here that the caller lacks permission. Package httplimit and
// /v1/decision act in place of the service, so they send 403 to the client.
//
// The list of overrides shows which clients are blocked, and an explanation shows the values that the policy
// matches, which may be secret. Only administrators may see them ([Config.Admin]).
//
// # Authentication
//
// Without [Config.Role], every program that can reach the API can spend the tokens of every client: restrict
// access. Admin endpoints can undo every limit and return 404 unless [Config.Admin] is set. Serve an API with
// Admin on its own address, with roles.
//
// The API rejects browser requests from pages of other origins. Pages on a host name that resolves to a loopback
// address pass this check. On a loopback address, reject other names in Host, as examples/dashboard does.
//
// # Gateways
//
// A gateway describes its client's request to /v1/decision in the headers of its [Profile]. The status decides:
//
//   - 200: allowed.
//   - 429: denied.
//   - 403: denied because a required attribute is missing.
//   - 503: the store is unavailable and the rule fails closed.
//   - 400: the description is incomplete, or a rule reads a path that servers interpret differently, such as
//     /a/%2e%2e/b (see package httplimit).
//
// If a leaky bucket delays a request, the response is delayed, by at most [Gateway.MaxDelay]. The gateway's
// timeout must be longer; if the gateway gives up, the request's tokens are refunded.
//
// nginx's auth_request turns every status except 2xx, 401 and 403 into a 500. The profile nginx therefore
// responds with 403 and sets X-RateLimit-Status to the real status: 429, 503 or 400.
//
// The gateway must set all three headers of its profile. It forwards its clients' headers, so a client controls
// every header that the gateway does not set. With the profile envoy, no header describes the request: Envoy keeps
// the method and the Host, and appends the path and query to /v1/decision. examples/gateways has configurations for nginx, HAProxy, Caddy and
// Traefik, and doc/gateways.md explains them.
package httpapi
