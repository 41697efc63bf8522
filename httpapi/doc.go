// SPDX-License-Identifier: Apache-2.0

// Package httpapi answers "may I?" over HTTP, for programs in any language and
// for gateways.
//
//	POST /v1/take       spend the request's tokens, or be denied
//	POST /v1/peek       the same answer, but nothing is spent
//	POST /v1/refund     give the request's tokens back: for administrators
//	POST /v1/reset      make every bucket that the request falls under full: likewise
//	POST /v1/explain    what a take would be answered, and why: likewise
//	     /v1/overrides  exceptions from the policy: likewise
//	GET  /v1/top        the keys that are denied most: likewise
//	GET  /v1/me         and rules, request, traffic, watch, violations, play: the limiter at
//	                    work, as package dashboard shows it: likewise, see [Live]
//	POST /v1/reload     read the policy again: likewise
//	ANY  /v1/decision   for gateways, such as nginx
//	GET  /livez         the process serves
//	GET  /readyz        the store answers, and traffic is welcome
//	GET  /openapi.json  all of this, as OpenAPI 3.1
//
// What they take and answer stands in doc/http.md, with examples, and to the member in
// openapi.json. Go programs ask with package client.
//
// # Requests
//
// The body of a POST is a request, or a batch of up to [MaxBatch], as JSON of at most
// [MaxBodyBytes]. It becomes a [mete.Request]. Nothing is guessed: members that are
// unknown or given twice are refused. A path, as it stands in the request line, a host
// and an address are brought into the one spelling that they have behind the other
// front doors, and refused where servers read them differently.
//
// # Answers
//
// Package api has the types of the answers. A request to /v1/take or /v1/peek is answered
// with 200 and an [api.Decision], whether it is allowed or denied: many HTTP clients repeat
// a 429 on their own, and each repetition takes again. With ?status=429, a denial has the
// status 429, or 503 because the store cannot answer, and Retry-After. A batch is answered
// with 200 and all of its answers. An answer without a decision is an [api.Problem].
//
// A denial for an attribute that a rule requires (on_missing: deny) has the reason
// missing_attribute and the wait null. Its status is never 403, which means here that the
// caller may not ask. Package httplimit and /v1/decision answer in place of the service,
// and send 403 to the client.
//
// A list of overrides shows which clients are blocked, and an explanation shows the values
// that the policy matches, which may be secret. They are served to administrators alone
// ([Config.Admin]).
//
// # Protection
//
// Unless [Config.Role] says who may ask, whoever can reach the API can spend tokens in
// anybody's name: keep it to the programs that are to ask. What is for administrators
// can undo every limit, and answers 404 unless [Config.Admin] is set. An API for which
// it is set belongs on an address of its own, with roles. Browsers' requests from pages
// of other origins are refused. Pages whose name resolves to a loopback address pass that
// check: on such an address, refuse other names in Host, as examples/dashboard does.
//
// # Gateways
//
// A gateway sends a description of its client's request to /v1/decision, in the
// headers of its [Profile], and obeys the status: 200 or 429, 403 where the
// request lacks an attribute that a rule insists on, and 503 where the store
// cannot answer and the rule is closed. A request that a leaky bucket lets start
// later is answered later, by at most [Gateway.MaxDelay]: the gateway's timeout must
// be longer, and where it is not the request's place is given back. A description that
// is not complete is answered with 400: it is never guessed. So is a path that a rule
// looks at and servers read differently, such as /a/%2e%2e/b: see package httplimit.
// nginx's auth_request turns whatever is neither 2xx, 401 nor 403 into a 500, so the
// profile nginx answers 403 and says in X-RateLimit-Status what was meant: 429, 503 or,
// of such a path, 400.
//
// The gateway must set all three headers of its profile: it passes on those of its
// clients, so that one it does not set is the client's to choose. In examples/gateways
// is what nginx, HAProxy, Caddy and Traefik are to be told, and in doc/gateways.md why.
package httpapi
