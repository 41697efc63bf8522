// SPDX-License-Identifier: Apache-2.0

// Package policy reads policies: files that say who may spend how much, in
// JSON. [Load] compiles one into a [Matcher], which finds the limits that a
// request falls under, and reports every mistake at once if it cannot. The module
// policyyaml loads the same language in YAML.
//
// This is the language in short. All of it, field by field and with examples, is in
// doc/policy.md of the repository, and as a JSON Schema in [JSONSchema].
//
// # Files
//
// A file has one of three shapes:
//
//	{"bundle_version": 3, "policies": [{"id": "api", "spec": {"rules": […]}}]}
//	{"rules": [{"name": "free", "limit_keys": ["ip:address"], …}, …]}
//	{"name": "free", "limit_keys": ["ip:address"], …}
//
// A bundle may say issued_at and expires_at; an expired one is refused. A rule
// that stands alone may lack both name and limit_keys: it is one bucket for
// all, named default. Unknown fields are mistakes.
//
// A policy has rules, and may have a selector (which requests it is about), a
// fallback_limit (for what falls under none of its rules), a mode that bounds those
// of its rules, and slot_by, headers and jitter for all rules that do not say
// otherwise. Beside rules, or beside policies, a file may have overrides,
// kill_switches, global_shadow, break_glass and tests, which package policytest reads.
//
// # Rules
//
// A rule has a name, limit_keys (attributes: requests with equal values share a
// bucket), perhaps a match, and algorithm_config or several limits. Rules with the
// same limit_keys, or of the same group, are tiers of one thing: the first that
// applies counts. Rules of different groups all count, together: a request is
// charged by all or by none. Tiers do not reach beyond one policy of a bundle. A rule
// that can never apply, because earlier ones take all its requests, is a mistake.
//
// Its mode says how far it is in force ([Mode]), on_missing what becomes of a request
// that lacks an attribute of limit_keys (skip, deny or empty), on_store_error and
// deadline what happens without the store.
//
// slot_by names an attribute whose value, in braces, begins the keys of rules that
// have it in their limit_keys, so that in a Redis Cluster all buckets of one tenant
// are in one slot. A rule that does not have it keeps its buckets where they are,
// with a warning, and so does one whose limit_keys cut ip:address shorter. A key in
// braces is another key: where slot_by is added or changed, these buckets begin full.
//
// A policy whose request could fall under more than [MaxMatches] limits is
// refused; where it has shards, each counts, and one less is allowed.
//
// # Attributes
//
//	ip:address      the client; IPv6 cut to its /64, or as ip:address/56 says
//	header:NAME query:NAME cookie:NAME jwt:CLAIM method path host
//	tenant user:id  whatever else an embedding program supplies
//
// Facts that mete does not know are mistakes: ip: with anything but address, and names
// that begin with a reserved word (ua, geo, time, date, request, response, body, tls).
//
// # Match
//
// A clause has an attribute and a value, which is text (numbers and booleans
// are compared as they are written), a prefix with a star at its end, a list of
// which any may hold, or {"not": …} of these. Of ip:address it is an address or
// a network such as 10.0.0.0/8. Methods are compared in upper case, hosts in
// lower case, all else as it is; paths and hosts are written as front doors spell
// them. A missing attribute satisfies not, and nothing else: "*" is any value,
// {"not": "*"} is absence.
//
// # Algorithms
//
//	token_bucket    holds up to burst and refills at a rate: all the time or, with
//	                refill: interval, an interval's tokens at once
//	fixed_window    tokens that all come back when the next window begins
//	sliding_window  tokens in any window, with the window before this one counted
//	                by the share that is still in it: two numbers a key
//	sliding_log     tokens in any window, exactly: each cost is remembered, up to
//	                [bucket.MaxLogEntries] a key
//	leaky_bucket    starts requests evenly spaced at a rate; those that come too
//	                early wait in a queue: they are admitted, with a time to start
//	cost_based      a fixed_window in other words: budget for tokens, period for
//	                window, cost_key for cost_source. Periods of whole weeks begin on
//	                Mondays
//
// They can be mixed in one rule. Each has its own fields, and another's are
// mistakes. Durations have a unit: those of Go, d and w. Amounts are exact to a
// thousandth of a token, and finer ones are mistakes. A rate that cannot be kept
// exactly is lowered by less than a billionth of itself, with a warning.
//
// A request costs fixed_cost, or what the attribute in cost_source says, between
// min_cost and max_cost, rounded up to a thousandth. What is no plain decimal number
// above 0 and at most [bucket.MaxTokens] costs default_cost.
//
// An entry of limits may have a name: its limit is then called rule/name, or rule/2 if
// it is the second and has no name. The only limit of a rule without a name of its own
// is called like the rule.
//
// # Overrides
//
// An [Override] is an exception from the rules, until it expires. Where several match,
// break_glass goes before shadow, that before block, that before allow, and that
// before limit; of equals the first one counts. global_shadow and break_glass at the
// top of a file are such overrides, and kill_switches are blocks. More are made while
// a policy is in force: see [Matcher.WithOverrides] and package overrides.
//
// # Tests
//
// A [Test] is a sequence of requests in virtual time, each decided by full buckets of
// the test's own and what its earlier requests left, and what is expected of the
// decisions. Package policytest runs them, and so does mete check; loading a policy
// only reads them. A name in them that the policy does not have is a mistake.
package policy
