// SPDX-License-Identifier: Apache-2.0

// Package policy reads policies: files that say who may spend how much, in
// JSON. [Load] compiles one into a [Matcher], which finds the limits that a
// request falls under, and reports every mistake at once if it cannot.
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
// all, named default. Unknown fields are mistakes, and so are those of things
// that mete does not do yet.
//
// A policy has rules, and may have
//
//	selector        which requests it is about: pathExact, pathPrefix, methods and
//	                hosts, each one value or a list. The prefix /v1 is of /v1 and of
//	                what begins with /v1/, and not of /v1x
//	fallback_limit  a rule for what falls under none of its others; without a name it
//	                is called fallback, or ID/fallback in a bundle, and without
//	                limit_keys it is one bucket for all of that
//	mode            of all its rules, which are no more in force than that
//	slot_by, headers, jitter  of all its rules that do not say otherwise; a bundle
//	                may say them for all its policies
//	description     for people
//
// Beside these, or beside policies, a file may have overrides, kill_switches,
// global_shadow, break_glass and tests: see below.
//
// # Rules
//
//	name            unique in the file; what headers, metrics and keys call it
//	limit_keys      attributes: requests with equal values share a bucket; [] is one for all
//	match           which requests the rule is about; all of its clauses must hold
//	algorithm       see below; token_bucket if absent
//	algorithm_config, or limits: a list of them, which charge together
//	mode            how far the rule is in force: off, shadow (decide and never deny),
//	                a share of its keys such as 25%, or enforce. It is the same keys
//	                each time, in all processes, and those of a smaller share are
//	                among them; for the others the rule is in shadow
//	group           see below
//	on_missing      of a request that lacks an attribute of limit_keys:
//	                skip (the rule does not apply), deny, or empty (take it as "")
//	on_store_error  open (let through), closed (refuse), or local: decide by a bucket
//	                in the memory of the process, with its share of the limit
//	deadline        how long the store may take until on_store_error applies, "50ms"
//	                if absent; between [MinDeadline] and [MaxDeadline]
//	slot_by         see below; that of a rule goes before its policy's
//	headers         the header fields in which HTTP front doors show the rule's limits:
//	                draft-11, legacy, x, or a list of these, or none
//	jitter          how far the waits that denied clients are told are spread: 0, or a
//	                share of the wait such as 50%
//	description     for people
//
// Rules with the same limit_keys are tiers of one thing: the first that applies
// counts, and the others do not. group puts other rules together instead, or
// one apart. Rules of different groups all count, together. Tiers do not reach
// beyond one policy of a bundle. A rule in shadow is chosen as if it were
// enforced, the others as if it were not there. A rule that can never apply, because
// earlier ones take all its requests, is a mistake.
//
// A policy, a bundle for all its policies, or a rule may say slot_by: an attribute such
// as header:x-tenant. The keys of rules that have it in their limit_keys then begin
// with its value in braces, so that in a Redis Cluster all buckets of one tenant
// are in one slot, where one script reaches them all. A rule that does not have it
// keeps its buckets where they are, with a warning: tenants share them. So does one
// whose limit_keys cut ip:address shorter than slot_by. A key in braces is another
// key: where slot_by is added or changed, these buckets begin full.
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
// # Match
//
// A clause has an attribute and a value, which is text (numbers and booleans
// are compared as they are written), a prefix with a star at its end, a list of
// which any may hold, or {"not": …} of these. Of ip:address it is an address or
// a network such as 10.0.0.0/8. Methods are compared in upper case, hosts in
// lower case, all else as it is. A missing attribute satisfies not, and nothing
// else: "*" is any value, {"not": "*"} is absence.
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
// mistakes:
//
//	rps, tokens_per_second  token_bucket, leaky_bucket: the rate, a decimal number
//	rate                    or so: "7/1m" is tokens/duration. With refill: interval
//	                        it is what comes at once and how often, and the only
//	                        way to say it. A rate that cannot be kept exactly is
//	                        lowered by less than a billionth of itself, with a
//	                        warning
//	burst                   token_bucket: the most it holds, a number of tokens or
//	                        how long the rate takes to refill it ("300s"). It may
//	                        be below what a second refills
//	refill                  token_bucket: continuous, which it is if absent, or
//	                        interval
//	tokens, window          fixed_window, sliding_window, sliding_log: how many, and
//	                        how long it is ("1m")
//	capacity                fixed_window: the most it holds, tokens if absent; above
//	                        that, unused ones are left to the next windows.
//	                        leaky_bucket: how many start at once, 1 if absent
//	queue                   leaky_bucket: how many tokens can wait, or how long the
//	                        last of them does ("2s"); 0 lets none wait
//	anchor                  fixed_window and refill: interval: where intervals begin.
//	                        epoch, also if absent: all keys together, counted from
//	                        1970, so that those of 1d begin at midnight UTC and
//	                        those of 1w on Thursday; key: for each key at another
//	                        time; first: with what is taken from a full bucket
//	start                   of anchor: epoch: how long after that they begin. With
//	                        "7h" a window of 1d begins at 7:00 UTC, with "4d" one
//	                        of 1w on Monday
//	max_reserved            token_bucket, fixed_window: the most tokens that requests
//	                        may owe which can wait; 0 is none, absent is no bound
//	shards                  token_bucket that refills all the time: how many buckets
//	                        each is split over, 2 to [MaxShards], for keys that are
//	                        too hot for one; none holds less than a token
//	staged_actions          all but leaky_bucket: what else becomes of those it admits
//	                        when little is left. A list of threshold (how much of the
//	                        capacity is used, in percent, rising) and action: warn, in
//	                        a header field; throttle, which lets each request wait for
//	                        delay (or delay_ms); reject, at 100, is what a limit does
//	leased                  token_bucket, fixed_window: true lets a store that is far
//	                        away hand out tokens in advance, which a process then
//	                        spends without asking. The bound holds; what one has in
//	                        advance the others lack. Not together with shards
//
// nginx's limit_req is a leaky_bucket: its burst=B is queue: B, and with delay=D it
// is queue: B−D and capacity: 1+D. With nodelay it is a token_bucket of burst:
// 1+B. A cooldown is a token_bucket: burst: 1, rate: 1/30s.
//
// All have these:
//
//	cost_source             fixed, header:NAME, query:NAME or attribute:NAME
//	fixed_cost              what a request costs, 1 if absent
//	default_cost            what one costs that names no cost, 1 if absent
//	min_cost, max_cost      bounds of what a request can name
//
// Durations have a unit: those of Go, d and w. Amounts are exact to a thousandth
// of a token, and finer ones are mistakes; a cost that a request names is
// rounded up. What is no plain decimal number above 0 and at most
// [bucket.MaxTokens] costs default_cost.
//
// An entry of limits has these fields, or an algorithm_config of its own. Where
// it names no algorithm it has the rule's. It may have a name: its limit is then
// called rule/name, or rule/2 if it is the second and has no name; the only limit
// of a rule is called like the rule.
//
// # Overrides
//
// An entry of overrides is an exception from the rules, until it expires:
//
//	id          its name
//	action      block: deny, whatever the rules say; the wait is until it expires
//	            allow: let pass, uncharged, by all rules or by those in rules
//	            limit: another limit in the place of that of the one rule in rules;
//	            what is missing from the bucket stays missing
//	            shadow: rules deny nothing, but say what they would have done
//	            break_glass: nothing is decided; all pass
//	match       as in a rule: what it is about. That of limit has attributes of its
//	            rule's limit_keys only. Without, shadow is about all requests
//	key         in place of match: a bucket's key, as an explanation shows it
//	algorithm, algorithm_config, limits  of limit, as in a rule; costs that are not
//	            said are the rule's
//	reason, author, expires_at  required
//	created_at  for people
//
// Where several match, break_glass goes before shadow, that before block, that before
// allow, and that before limit; of equals the first one counts. global_shadow and
// break_glass at the top of a file are such overrides: {reason, author, expires_at},
// and perhaps enabled: false. kill_switches are blocks, of scope_key, scope_value and
// perhaps route, an exact path, with a reason and expires_at. More are made while a
// policy is in force: see [Matcher.WithOverrides] and package overrides.
//
// # Tests
//
// An entry of tests is a sequence of requests in virtual time, each decided by full
// buckets of the test's own and what its earlier requests left, and what is expected
// of the decisions. Package policytest runs them, and so does mete check; loading a
// policy only reads them. A name in them that the policy does not have is a mistake.
//
//	name     distinct; what the test shows
//	at       when it begins, an instant; [TestsBegin] if absent
//	request  the attributes of its requests, by name
//	steps    see below; a test of one step has the fields of that in place of it
//
// The attributes are as front doors have them: the path with or without escapes, the
// host with or without a port. A "{n}" in a value is the number of the request in its
// step, from 1, so that user-{n} is another user each time. A step has
//
//	after    how long after the request before, 0 if absent; or
//	at       how long after the test began, or an instant
//	times    how many requests it makes, 1 if absent
//	every    how long from one of them to the next, 0 if absent
//	with     attributes that these requests have besides those of the test, or instead
//	without  the names of those of the test that they lack
//	cost     which they bring, in place of what the rules say
//	max_wait how long they may wait: they reserve
//	expect   allowed, denied, or an object with any of the fields below; a step
//	         without it only makes requests
//
// These are expected of all of its requests:
//
//	allowed      true, or how many of them are
//	denied       true, or how many; or by which rule or limit those are that are not
//	             allowed, or by which how many, as in {"free": 5}
//	reason       why they are denied
//	rule         the rule, or limit, that decides: as in a decision
//	applies      the rules in force that they fall under, no more and no less
//	override     the ID of the override that denies them, lets them pass, or changes
//	             a limit; or none
//	would_deny   the rule in shadow that would deny them, a list of such rules, or
//	             which would deny how many; [] is that none would deny any
//
// And these, which change with each request, of the last one:
//
//	retry_after  how long a denied client is told to wait, exactly; or never
//	wait         how long an admitted request has to wait before it starts
//	remaining    what the limit that decides has left, in whole tokens, or exactly if
//	             there is a fraction; or an object of limits and what they have
//	cost         what it costs under the limit that decides; or an object of limits
//	stage        the threshold of the stage in force, such as 80%; or none
package policy
