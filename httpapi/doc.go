// SPDX-License-Identifier: Apache-2.0

// Package httpapi answers "may I?" over HTTP, for programs in any language and
// for gateways.
//
//	POST /v1/take      spend the request's tokens, or be denied
//	POST /v1/peek      the same answer, but nothing is spent
//	POST /v1/refund    give the request's tokens back: for administrators
//	POST /v1/reset     make every bucket that the request falls under full: likewise
//	POST /v1/explain   what a take would be answered, and why: likewise
//	GET  /v1/top       which keys are denied most, or near a limit: likewise
//	     /v1/overrides  exceptions from the policy: likewise
//	ANY  /v1/decision  for gateways, such as nginx
//	GET  /livez        the process serves
//	GET  /readyz       the store answers, and traffic is welcome
//
// # Requests
//
// The body of a POST is a request, as application/json of at most
// [MaxBodyBytes]:
//
//	{"attributes": {"header:x-api-key": "k1", "path": "/v1/x"}, "cost": 1.5, "max_wait": "2s", "id": "7f3a"}
//
// Only attributes are required. Names of attributes are those of policy files,
// and values are strings. A path, as it stands in the request line, a host and an
// address are brought into the one spelling that they have behind the other
// front doors: "//x/%79?q" is "/x/y", and "Example.com:80" is "example.com". A path
// that servers read differently, such as "/x/%2e%2e/y", and an address that is none
// are refused. A cost, above 0 and with at most 3 decimals, takes
// the place of the one that the policy says. A longest wait reserves: see
// [mete.Request]. An id is the same for every attempt at one request: a caller
// who lost an answer asks again under it, and is not charged twice within
// [mete.RetryHorizon]. Refund and reset take the same request; what they have no use
// for is read and left alone. Nothing is guessed: members that are unknown or
// given twice are refused.
//
// A batch, {"requests": [ … ]}, holds up to [MaxBatch] requests, which are
// served one after another. They are checked first: where one is wrong, none is
// served. The answer is then always 200 with {"responses": [ … ]},
// each of which is the body that the request alone would have been answered
// with.
//
// # Answers
//
// An allowed request is answered with 200, a denied one with 429 and
// Retry-After, and one that is denied because the store cannot answer with 503,
// each with a [Decision]:
//
//	{"allowed":false,"rule":"free","reason":"token_bucket_exceeded","retry_after":0.1,"degraded":false,
//	 "limits":[{"rule":"free","limit":"free","remaining":0,"retry_after":0.1,"full_after":2}]}
//
// Times are seconds, exact to the microsecond, and null for never. Tokens are
// whole ones, rounded down. An admitted request that has to wait before it starts,
// as it may where it sent max_wait and under a leaky bucket, says so in "wait", and
// it is for the caller to wait so long. A decision that the store had no part in
// has "degraded":true and says why in a word: "failure":"timeout". Where buckets of
// this process decided in its place, it is 200 or 429 as any other, and "limits"
// are those buckets. Refund and reset answer {}. Whatever has
// no decision to give is a [Problem], as application/problem+json.
//
// A request that lacks an attribute which a rule insists on (on_missing: deny)
// is denied like any other: 429 with the reason missing_attribute, and null to
// wait. Here 403 means that the caller may not ask. Package httplimit and
// /v1/decision, which answer in place of the service, say 403 to the client.
//
// # Explanations
//
// /v1/explain takes one request as /v1/take does, spends nothing, and answers 200
// with an [Explanation]: the decision that a take would be answered now, and for
// each rule of the policy what became of it, in a word and in a sentence.
//
//	{"at":"2026-05-04T12:00:00.1Z","policy_version":7,
//	 "why":"denied by rule free: 0 of 20 tokens left, and it costs 1",
//	 "decision":{"allowed":false,"rule":"free", … },"passes_at":"2026-05-04T12:00:00.2Z","override":null,"shadowed_by":null,
//	 "rules":[
//	  {"name":"enterprise","mode":"enforce","limit_keys":["header:x-api-key"],"outcome":"unmatched","shadow":false,
//	   "why":"jwt:plan is \"pro\", and the rule wants \"enterprise\"",
//	   "attribute":"jwt:plan","has":"pro","wants":"\"enterprise\"","limits":[]},
//	  {"name":"free","mode":"enforce","limit_keys":["header:x-api-key"],"outcome":"applies","shadow":false,"why":"applies, and denies it",
//	   "limits":[{"name":"free","key":"free:x-api-key=~8jDYDwKAEJTHLRfbhLSq5g","algorithm":"token_bucket","cost":1,"capacity":20,
//	    "asked":true,"allowed":false,"before":{"remaining":0},"after":{"remaining":0},
//	    "retry_after":0.1,"passes_at":"2026-05-04T12:00:00.2Z","full_after":2}]}]}
//
// Where a rule or an override denies the request by itself, or the store does not
// answer, buckets are not asked, and what they hold is left out. A rule in shadow
// is asked by itself, and only about requests that all others allow.
//
// # Top keys
//
// GET /v1/top says which keys were denied most within about the last minute, as
// [TopKeys]. ?rule=NAME asks about one rule, ?kind=near about requests that were
// admitted and left little, and ?kind=shadow about those that a rule in shadow would
// have denied, ?limit=N for so many keys instead of [DefaultTop], and ?window=30s about
// the last half of a minute:
//
//	{"kind":"denied","since":"2026-05-04T11:59:00Z","at":"2026-05-04T12:00:10Z","counters":100,"masked":false,
//	 "total":4711,"dropped":0,"rules":[{"rule":"free","total":4711,"dropped":0,"keys":2,"unlisted":0}],"rule_count":1,
//	 "keys":[{"rule":"free","limit":"free","key":"free:ip=192.0.2.1","parts":[{"name":"ip:address","value":"192.0.2.1"}],
//	  "count":4700,"error":0,"first":"2026-05-04T11:02:33Z","last":"2026-05-04T12:00:09.9Z","retry_after":0.5}, … ]}
//
// A count is at most its error too high, and never too low, but for what was dropped; a
// key that is not in the list of a rule was recorded at most "unlisted" times: see
// package topkeys. Whoever has the role [Read] alone sees keys masked.
//
// # Overrides
//
// GET /v1/overrides lists what is in force in spite of the policy, as [Overrides].
// ?audit=N asks for so many entries of what was done, instead of [DefaultAudit]. PUT
// /v1/overrides makes an override, or puts it in the place of the one with its id:
//
//	{"action": "block", "match": {"header:x-api-key": "k1"}, "reason": "scrapes", "author": "kim", "expires_at": "2026-11-22T08:00:00Z"}
//
// The body is one entry of overrides in a policy file. It is answered with an
// [Override]; an id that was not sent is in there. What is wrong with it is all in the
// mistakes of a [Problem] with status 422. DELETE /v1/overrides/ID?author=kim&reason=over
// ends one; both are required. Where others change something at the same moment, again
// and again, either is answered with 409. A list of them says what is blocked, and with
// that who: they are served to administrators alone ([Config.Overrides]).
//
// # Protection
//
// The API asks for no password. Whoever can reach it can spend tokens in
// anybody's name, so keep it to the programs that are to ask. Refund, reset and explain
// need more than that, since they can undo every limit, and say what the policy
// matches, which may be a secret: they answer 404 unless
// [Config.Admin] is set, and an API for which it is set belongs on an address of
// its own, or behind something that authenticates. Browsers' requests from pages
// of other origins are refused.
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
// of such a path, 400:
//
//	location / {
//	    auth_request     /_limit;
//	    auth_request_set $limit_status $upstream_http_x_ratelimit_status;
//	    auth_request_set $retry_after  $upstream_http_retry_after;
//	    error_page 403 = @limited;
//	    …
//	}
//	location = /_limit {
//	    internal;
//	    proxy_pass              http://127.0.0.1:8080/v1/decision;
//	    proxy_pass_request_body off;
//	    proxy_set_header        Content-Length    "";
//	    proxy_set_header        X-Original-Method $request_method;
//	    proxy_set_header        X-Original-URI    $request_uri;
//	    proxy_set_header        X-Original-Host   $host;
//	    proxy_set_header        X-Forwarded-For   $remote_addr;
//	}
//	location @limited {
//	    add_header Retry-After $retry_after always;
//	    if ($limit_status = 429) { return 429; }
//	    if ($limit_status = 503) { return 503; }
//	    if ($limit_status = 400) { return 400; }
//	    return 403;
//	}
//
// All three X-Original headers must be set there: nginx passes on the headers
// of its clients, so that one it does not set is the client's to choose.
package httpapi
