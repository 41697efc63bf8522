// SPDX-License-Identifier: Apache-2.0

// Package policy reads policies: JSON files with rate limits and the requests that they apply to. [Load] compiles a
// file into a [Matcher], which finds the limits that apply to a request. If the file is invalid, Load reports all
// errors together. Package policyyaml loads the same language in YAML.
//
// This comment summarizes the language. The file doc/policy.md of the repository describes each field, with
// examples. [JSONSchema] returns a JSON Schema of the language.
//
// # Files
//
// A file has one of three forms:
//
//	{"bundle_version": 3, "policies": [{"id": "api", "spec": {"rules": […]}}]}
//	{"rules": [{"name": "free", "limit_keys": ["ip:address"], …}, …]}
//	{"name": "free", "limit_keys": ["ip:address"], …}
//
// A bundle may have issued_at and expires_at; an expired bundle is rejected. A single rule may omit both name and
// limit_keys. It is then named default and has one bucket for all requests. Unknown fields are errors.
//
// A policy has rules. Its selector chooses the requests that it applies to, and its fallback_limit is for requests
// that match no rule. Its mode weakens the modes of its rules. Rules inherit slot_by, headers and jitter unless
// they set their own. Next to rules or policies, a file may have overrides, kill_switches, global_shadow,
// break_glass and tests. Package policytest runs the tests.
//
// # Rules
//
// A rule has a name, limit_keys, an optional match, and either algorithm_config or limits. Requests with equal
// values of the attributes in limit_keys share a bucket. Rules with the same limit_keys, or with the same group,
// are tiers: only the first that matches applies. Rules of different groups apply together: a request is charged by
// all of them or by none. Tiers do not span policies of a bundle. A rule is an error if earlier rules match all its
// requests.
//
// The [Mode] of a rule sets whether it is enforced. on_missing (skip, deny or empty) is for requests that lack an
// attribute of limit_keys. on_store_error and deadline are for outages of the store.
//
// slot_by names an attribute. Keys of rules with that attribute in limit_keys begin with its value in braces. A
// Redis Cluster then keeps all buckets of one tenant in one slot. Other rules keep their keys, with a warning; so
// do rules with limit_keys that cut ip:address shorter. The braces change the key: adding or changing slot_by
// resets these buckets.
//
// A policy is rejected if more than [MaxMatches] limits could apply to one request. In a policy with shards, each
// shard counts, and the bound is one lower.
//
// # Attributes
//
//	ip:address      the client; IPv6 is cut to its /64, or to /56 by ip:address/56
//	header:NAME query:NAME cookie:NAME jwt:CLAIM method path host
//	tenant user:id  attributes that the embedding program supplies
//
// Unknown facts are errors: ip: with anything but address, and names that begin with a reserved word (ua, geo,
// time, date, request, response, body, tls).
//
// # Match
//
// A clause has an attribute and a value. The value is text, a prefix with a star at its end, a list of
// alternatives, or {"not": …} of these. Numbers and booleans are compared as text. The value of ip:address is an
// address or a network such as 10.0.0.0/8. Methods are compared in upper case and hosts in lower case. Paths and
// hosts are compared in the form that HTTP servers normalize them to. A missing attribute satisfies only not: "*"
// is any value, and {"not": "*"} is absence.
//
// # Algorithms
//
//	token_bucket    holds up to burst and refills at a rate, continuously or, with
//	                refill: interval, once per interval
//	fixed_window    has a number of tokens per window, all available at its start
//	sliding_window  limits the tokens in any window; it weights the previous window by
//	                its remaining share, and keeps two numbers per key
//	sliding_log     limits the tokens in any window exactly; it keeps each cost, up to
//	                [bucket.MaxLogEntries] per key
//	leaky_bucket    starts requests evenly spaced at a rate; early requests wait in a
//	                queue: they are admitted with a start time
//	cost_based      is like fixed_window with other field names: budget for tokens, period for
//	                window, cost_key for cost_source. Periods of whole weeks begin on
//	                Mondays
//
// One rule can mix them. Each algorithm has its own fields; fields of another algorithm are errors. Durations have
// a unit: the units of Go, d or w. Amounts are exact to a thousandth of a token; finer amounts are errors. A rate
// without an exact representation is lowered by less than a billionth, with a warning.
//
// A request costs fixed_cost, or the number in the attribute of cost_source, between min_cost and max_cost and
// rounded up to a thousandth. If the attribute is not a plain decimal number above 0 and at most
// [bucket.MaxTokens], the request costs default_cost.
//
// An entry of limits may have a name. The limit is then called rule/name; without a name, the second one is called
// rule/2. If a rule has a single limit without a name, the limit has the name of the rule.
//
// # Overrides
//
// An [Override] is an exception from the rules until it expires. If several match, the order of precedence is
// break_glass, shadow, block, allow, limit; among equal actions the first one wins. global_shadow, break_glass and
// kill_switches at the top of a file are short forms of overrides. [Matcher.WithOverrides] and package overrides
// add overrides to an active policy.
//
// # Tests
//
// An entry of tests is a sequence of requests in virtual time and the expected decisions. Each test starts with full buckets
// of its own. Package policytest and the command mete check run tests; loading a policy only parses them. A test
// that names an unknown rule or override is an error.
package policy
