// SPDX-License-Identifier: Apache-2.0

package policy

// A fieldText says what a field is for, and what form its value has.
type fieldText struct {
	text string
	form part
}

func text(most int) part { return part{"type": "string", "maxLength": most} }

// fieldTexts are those of all fields, by name, and by the kind of object and name
// where a name means something else in it.
var fieldTexts = map[string]fieldText{
	"bundle_version":    {"Grows with every change of the bundle: a server keeps the one with the higher version.", part{"type": "integer", "minimum": 1}},
	"issued_at":         {"When the bundle was made.", ref("instant")},
	"expires_at":        {"Until when it holds: from then on it is as if it were not there.", ref("instant")},
	"bundle.expires_at": {"Until when it may be put in force; one that is stays, and the log says so.", ref("instant")},
	"policies":          {"The policies of the bundle. All of them apply, each to the requests of its selector.", listOf(ref("entry"), 1, MaxPolicies)},
	"id":                {"The name of the policy.", ref("name")},
	"override.id":       {"A name by which the override can be removed.", ref("name")},
	"spec":              {"The policy.", ref("policy")},
	"description":       {"For people.", text(maxDescriptionBytes)},
	"slot_by":           {"An attribute whose value begins the keys of rules that have it in limit_keys, so that its buckets are in one slot of a Redis Cluster.", ref("attribute")},
	"headers":           {"The header fields in which limits are shown: draft-11, legacy, x, several of these, or none.", ref("dialects")},
	"jitter":            {"How far the waits that denied clients are told are spread: 0, or a share of the wait such as 50%.", ref("jitter")},

	"selector":   {"Which requests the policy is about; all if it is absent.", ref("selector")},
	"pathExact":  {"Paths.", ref("values")},
	"pathPrefix": {"Beginnings of paths, in whole segments: /v1 is /v1 itself and what begins with /v1/.", ref("values")},
	"methods":    {"Methods, of which the request has one.", ref("values")},
	"hosts":      {"Hosts, of which the request has one.", ref("values")},

	"rules":          {"Rules. Those with the same limit_keys are tiers, of which the first that matches counts; others apply together.", part{"type": "array", "items": ref("rule"), "maxItems": MaxRules}},
	"override.rules": {"The names of the rules that the override is about.", listOf(ref("name"), 1, MaxRules)},
	"fallback_limit": {"The limit of requests that fall under none of the rules.", ref("fallback")},
	"mode":           {"How far it is in force: off, shadow (decide, and deny nobody), a share of the keys such as 25%, or enforce.", ref("mode")},

	"overrides":     {"Exceptions from the rules, until they expire.", listOf(ref("override"), 0, MaxOverrides)},
	"kill_switches": {"Requests that are denied, until the switch expires.", listOf(ref("killSwitch"), 0, MaxOverrides)},
	"global_shadow": {"Rules deny nobody, and say what they would have done, until it expires.", ref("state")},
	"break_glass":   {"Nothing is decided, and all pass, until it expires.", ref("state")},
	"tests":         {"Requests in virtual time, and what is expected of the decisions. mete check runs them.", listOf(ref("test"), 0, MaxTests)},

	"name":             {"What headers, metrics and keys call it. Unique in the file.", ref("name")},
	"limit.name":       {"What the limit is called behind its rule's name: rule/name.", part{"type": "string", "minLength": 1, "maxLength": maxLimitNameBytes, "pattern": `^[ -~]+$`}},
	"test.name":        {"What the test shows, in words.", part{"type": "string", "minLength": 1, "maxLength": maxTestNameBytes}},
	"limit_keys":       {"Attributes: requests with equal values share a bucket. [] is one bucket for all.", listOf(ref("attribute"), 0, MaxLimitKeys)},
	"match":            {"Which requests it is about; all of the clauses must hold.", ref("match")},
	"group":            {"Rules of one group are tiers: the first that matches counts. Those with the same limit_keys are, if it is absent.", ref("name")},
	"algorithm":        {"How it limits; token_bucket if it is absent.", word(algorithmNames()...)},
	"algorithm_config": {"The numbers of the limit.", part{"type": "object"}},
	"limits":           {"Several limits, which charge together.", part{"type": "array", "minItems": 1, "maxItems": MaxLimits}},
	"on_missing":       {"What becomes of a request that lacks an attribute of limit_keys: skip (the rule does not apply), deny, or empty (take it as empty).", word("skip", "deny", "empty")},
	"on_store_error":   {"What becomes of a request when the store does not answer: open (let it through), closed (refuse it), or local (decide in the process, by its share).", word("open", "closed", "local")},
	"deadline":         {"How long the store may take until on_store_error applies, from 1ms to 10s; 50ms if it is absent.", ref("duration")},

	"tokens_per_second": {"The rate.", ref("amount")},
	"rps":               {"The rate, in tokens a second.", ref("amount")},
	"rate":              {"The rate, as tokens/duration.", part{"type": "string", "pattern": "^[^/]+/[^/]+$", "examples": []string{"7/1m", "1000/1d"}}},
	"burst":             {"The most a bucket holds: a number of tokens, or how long the rate takes to refill it; 0, with max_reserved, lets every request wait for its turn.", ref("extent")},
	"refill":            {"continuous, or interval: what an interval brings comes all at once.", word("continuous", "interval")},
	"anchor":            {"Where intervals begin: epoch, all together, from 1970; key, for each key at another time; first, with the first request.", word("epoch", "key", "first")},
	"start":             {"How long after 1970 the intervals of anchor: epoch begin: 7h makes days begin at 7:00 UTC, 4d weeks on Mondays.", ref("duration")},
	"max_reserved":      {"The most tokens that requests may owe which can wait; 0 is none, absent is no bound.", ref("amountOrNone")},
	"shards":            {"How many buckets each is split over, for keys that are too hot for one.", part{"type": "integer", "minimum": 2, "maximum": MaxShards}},
	"leased":            {"Whether a store that is far away may hand out tokens in advance.", part{"type": "boolean"}},
	"tokens":            {"How many tokens a window has.", ref("amount")},
	"window":            {"How long the window is.", ref("duration")},
	"capacity":          {"The most it holds. Of fixed_window: unused tokens are left to later windows, up to that. Of leaky_bucket: how many start at once.", ref("amount")},
	"queue":             {"How many tokens can wait, or how long the last of them does; 0 lets none wait.", ref("extent")},
	"budget":            {"How much a period has.", ref("amount")},
	"period":            {"How long the period is.", ref("duration")},
	"cost_source":       {"Where the cost of a request stands: fixed, header:NAME, query:NAME or attribute:NAME.", part{"type": "string", "examples": []string{"fixed", "header:x-cost"}}},
	"cost_key":          {"The same as cost_source.", part{"type": "string"}},
	"fixed_cost":        {"What a request costs; 1 if it is absent.", ref("amount")},
	"default_cost":      {"What a request costs that names no cost; 1 if it is absent.", ref("amount")},
	"min_cost":          {"The least that a request can cost which names its cost.", ref("amount")},
	"max_cost":          {"The most that a request can cost which names its cost.", ref("amount")},

	"staged_actions":    {"What becomes of requests when little is left, before they are denied.", listOf(ref("stage"), 1, MaxStages)},
	"threshold":         {"How much is used where the stage begins, in percent.", ref("percent")},
	"threshold_percent": {"The same as threshold.", ref("percent")},
	"action":            {"warn (say so in a header), throttle (delay each request), or reject, at 100.", word("warn", "throttle", "reject")},
	"delay":             {"How long each request waits.", ref("duration")},
	"delay_ms":          {"The same as delay, in milliseconds.", ref("amount")},

	"override.action": {"What it does: " + enumerate(actionWords(), "or") + ". limit is another limit than the rule's.", word(actionWords()...)},
	"key":             {"A bucket's key, as an explanation shows it, in place of match.", text(MaxKeyBytes)},
	"reason":          {"Why it is there: people will ask.", part{"type": "string", "minLength": 1, "maxLength": maxReasonBytes}},
	"author":          {"Who is to be asked about it.", part{"type": "string", "minLength": 1, "maxLength": maxAuthorBytes}},
	"created_at":      {"When it was made.", ref("instant")},
	"enabled":         {"false is as if it were not there.", part{"type": "boolean"}},
	"scope_key":       {"The attribute whose value is denied.", ref("attribute")},
	"scope_value":     {"Its value.", ref("scalar")},
	"route":           {"The path on which it is denied; all if it is absent.", text(maxMatchValueBytes)},

	"at":                 {"When: how long after the test began, or an instant.", part{"type": "string", "examples": []string{"90s", "2026-01-02T15:04:05Z"}}},
	"after":              {"How long after the last request.", ref("duration")},
	"request":            {"The attributes of the requests.", ref("attributes")},
	"with":               {"Attributes that these requests have instead, or besides.", ref("attributes")},
	"without":            {"Attributes that these requests lack.", either(ref("attribute"), listOf(ref("attribute"), 1, 10_000))},
	"steps":              {"Requests, one step after the other.", listOf(ref("step"), 1, MaxTestSteps)},
	"times":              {"How many requests; 1 if it is absent.", part{"type": "integer", "minimum": 1, "maximum": MaxTestRequests}},
	"every":              {"How long it is from one request to the next; all at once if it is absent.", ref("duration")},
	"cost":               {"What each request costs, in place of the rules' own.", ref("amount")},
	"max_wait":           {"How long each request may wait.", ref("duration")},
	"expect":             {"What is expected: allowed, denied, or more.", either(word("allowed", "denied"), ref("expectation"))},
	"expect.allowed":     {"How many requests are allowed; true is all.", ref("count")},
	"expect.denied":      {"How many requests are denied, or by which rule.", ref("counts")},
	"expect.rule":        {"The rule, or limit, that decides.", part{"type": "string"}},
	"expect.reason":      {"The reason of denials.", part{"type": "string"}},
	"expect.retry_after": {"When the last denied request may come back.", part{}},
	"expect.remaining":   {"How many whole tokens the last request leaves.", part{}},
	"expect.cost":        {"What each request costs.", part{}},
	"expect.wait":        {"How long the last request has to wait.", part{}},
	"expect.stage":       {"The stage that the last request reaches.", part{}},
	"expect.override":    {"The override that decides.", part{}},
	"expect.applies":     {"The rules that each request falls under.", part{}},
	"expect.would_deny":  {"How many requests rules in shadow would deny.", ref("counts")},
}

func algorithmNames() (names []string) {
	for _, a := range algorithms {
		names = append(names, a.name)
	}
	return names
}
