// SPDX-License-Identifier: Apache-2.0

// Package envoyapi answers Envoy's rate limit service and its external authorization service with a limiter.
//
// # Rate limit service
//
// A [RateLimit] answers envoy.service.ratelimit.v3.RateLimitService with the limiter's own policy. Each descriptor is
// one event with attributes of its own:
//
//	envoy:domain      the domain of the request
//	descriptor:KEY    the value of the entry with that key
//	descriptor:KEY#2  the value of the second entry with that key, and so on
//
// All descriptors of a request are one take: a denied request spends nothing. A descriptor without a matching rule is
// OK and has no current_limit, and so is every descriptor of an unknown domain. Entries with keys that are no
// attribute names have no effect, because no rule can name them.
//
// Costs: hits_addend of a descriptor, else of the request, else the cost of the rule. A hits_addend replaces the
// rule's cost, as the cost of /v1/take does. A descriptor with is_negative_hits refunds its hits after the other
// descriptors passed, and is OK. A bucket never exceeds its capacity. If the others are denied, nothing is refunded.
//
// A descriptor with hits_addend 0 looks: it spends nothing, and is over the limit only while the bucket is in debt.
// A bucket with 0 tokens left is not in debt, as a counter at its limit is not over it.
//
// Hits at the end of a stream (apply_on_stream_done) are for work that has already happened, and their number may
// exceed the tokens left. A take would then be denied and spend nothing. Envoy does not mark such a request, so the
// configuration marks it with an entry that has the key mete_charge ([ChargeKey]). All hits of a marked request are
// charged, even if tokens are missing. The bucket then owes them. Until the debt is paid, looks and takes are over the
// limit. Never mark hits before the work, because such a request is not limited. The value of the entry has no effect,
// and rules can ignore the entry. Envoy sends the hits of a finished stream in a request of its own, so that one
// marked descriptor is enough:
//
//	rate_limits:
//	- hits_addend: {number: 0}
//	  actions: [{request_headers: {header_name: x-user, descriptor_key: user}}]
//	- hits_addend: {format: "%DYNAMIC_METADATA(llm:total_tokens)%"}
//	  apply_on_stream_done: true
//	  actions:
//	  - request_headers: {header_name: x-user, descriptor_key: user}
//	  - generic_key: {descriptor_key: mete_charge, descriptor_value: "1"}
//
// The debt is unbounded unless the rule sets max_reserved or a queue. A charge that would exceed them is denied, and
// nothing is spent. Package dropin needs no mark, because it counts all hits.
//
// The limit of a descriptor, which the caller chooses, applies in addition to the policy, so that a caller can only
// tighten the policy. Its bucket holds requests_per_unit tokens, refills them within unit × unit_multiplier, and
// belongs to the domain and the entries of the descriptor. MONTH means 30 days and YEAR means 365 days.
//
// The answer: overall_code is OK or OVER_LIMIT, never UNKNOWN. Each status describes one limit of the
// descriptor: the limit that denied, or the limit with the fewest tokens left. limit_remaining saturates at 2^32-1.
// duration_until_reset is in whole seconds, rounded up. For a denied descriptor it is the wait, and otherwise the time
// until the bucket is full. It is absent if no wait helps. current_limit has the
// numbers of the policy: "5/10s" is requests_per_unit 5, unit SECOND and unit_multiplier 10. The limit of a caller is returned as it is.
// response_headers_to_add has the RateLimit fields and, on a denial, Retry-After. The dynamic metadata is set if
// the request was denied, delayed, degraded or decided by an override. Its fields are rule, reason, descriptor,
// override, degraded, failure and wait_seconds. Envoy cannot delay a request: only wait_seconds tells the delay of a queue or a stage.
// Quota fields are ignored and absent. Shadow rules never appear.
//
// Errors have these codes. Envoy then allows the request unless failure_mode_deny is set:
//
//	InvalidArgument   no domain; no descriptors, or more than [mete.MaxParts] of them; more than [MaxEntries]
//	                  entries; a limit with the unit UNKNOWN or an invalid rate; too many hits; entries a, a and a#2.
//	                  If only the sum of negative hits is too large, the other hits have been taken
//	PermissionDenied  negative hits of a caller that [RateLimitConfig.MayRefund] refuses
//	Unavailable       a refund failed: hits may have been taken and refunded
//	DeadlineExceeded,
//	Canceled          the call ended first
//
// If the store does not answer within the deadline of a rule, on_store_error of the rules decides. Envoy's filter
// waits 20 ms by default, and a rule 50 ms: set the deadline of the rules below the timeout of the filter.
//
// # External authorization
//
// An [Authorization] answers envoy.service.auth.v3.Authorization (ext_authz). A check contains the client's request.
// Rules see its method, path, host, header fields, query, cookies and client address, normalized as in an HTTP server.
// A context extension KEY of the route is the custom attribute envoy:context:KEY.
//
// The answer is an OK response with the RateLimit fields, or a denied response. A denied response has the status,
// fields and body that an HTTP server with the same policy would send. The status is mostly 429 with Retry-After, and
// otherwise 400, 403 or 503. The dynamic metadata has the rule and the reason. A request in the queue of a leaky bucket is delayed, unlike in
// the rate limit service. [Authorization.Check] lists the errors, and [AuthorizationConfig] the trusted proxies.
//
// Package dropin answers the rate limit service with the configuration of envoyproxy/ratelimit in place of a policy.
package envoyapi
