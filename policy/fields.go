// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/metehq/mete/internal/parse"

// A place is a set of objects of the policy language.
type place uint32

// From inTokenBucket to inCostBased, they are the limits of the algorithms.
const (
	inBundle place = 1 << iota
	inEntry        // an entry of a bundle's policies
	inPolicy
	inFile // at the top, next to rules or policies
	inRule
	inFallback
	inLimit // an entry of limits, with any algorithm
	inTokenBucket
	inFixedWindow
	inSlidingWindow
	inSlidingLog
	inLeakyBucket
	inCostBased
	inSelector
	inStage
	inOverride
	inSwitch
	inState
	inTest
	inStep
	inExpect

	inRules   = inRule | inFallback
	inWindows = inFixedWindow | inSlidingWindow | inSlidingLog
	inStepped = inTokenBucket | inFixedWindow | inCostBased
	inStaged  = inTokenBucket | inWindows | inCostBased
	inLimits  = inStaged | inLeakyBucket
)

// A field is one row of the table of fields. The parser, the JSON Schema, the YAML writer, the dashboard and mete
// explain take all their information about a field from its row.
type field struct {
	name string
	in   place  // the objects that can have it
	doc  string // its description in the JSON Schema
	form parse.Schema

	needed place  // the objects that must have it
	hint   string // if the field is missing

	leads     bool // people write it first, regardless of its place in the table
	inherited bool // policies inherit it from their bundle, and rules from their policy

	// rule and limit read the field of a rule (or of its policy) or of a limit with a known bucket. Both are nil
	// for a field that its object reads together with others.
	rule  func(*compiler, *draft, *parse.Node)
	limit func(*compiler, *Limit, *parse.Node)

	// label and one of the functions show the field on the rules page and in explanations: see [Fact]. An empty
	// value shows nothing.
	label     string
	showRule  func(*Rule) (value string, notable bool)
	showLimit func(*Limit) (value string, notable bool)
}

// fields are all fields of the language, in the order of messages and YAML. A name has several rows if its meaning
// differs between objects.
var fields = []field{
	{name: "bundle_version", in: inBundle, doc: "The version of the bundle. A server rejects a bundle with a lower version than the active one.",
		form: parse.Schema{"type": "integer", "minimum": 1}},
	{name: "issued_at", in: inBundle, doc: "When the bundle was created.", form: parse.Ref("instant")},
	{name: "expires_at", in: inBundle, doc: "When the bundle expires. An expired bundle is not activated. An active bundle stays active, and the server logs it.", form: parse.Ref("instant")},
	{name: "id", in: inEntry, needed: inEntry, leads: true, doc: "The name of the policy.", form: parse.Ref("name")},
	{name: "spec", in: inEntry, needed: inEntry, doc: "The policy.", form: parse.Ref("policy")},
	{name: "name", in: inRules, needed: inRule, leads: true, doc: "The name of the rule in headers, metrics and keys. Unique in the file.",
		form: parse.Ref("name"), hint: "every rule needs a unique name", rule: (*compiler).readRuleName},
	{name: "name", in: inLimit, doc: "The name of the limit within its rule, as in rule/name.",
		form: parse.Schema{"type": "string", "minLength": 1, "maxLength": maxLimitNameBytes, "pattern": `^[ -~]+$`}},
	{name: "name", in: inTest, needed: inTest, doc: "A unique description of the test.", form: parse.NonEmptyText(parse.MaxTestName)},

	{name: "selector", in: inPolicy, leads: true, doc: "The requests that the policy applies to; all requests if absent.", form: parse.Ref("selector")},
	{name: "pathExact", in: inSelector, doc: "Exact paths.", form: parse.Ref("values")},
	{name: "pathPrefix", in: inSelector, doc: "Path prefixes of whole segments: /v1 matches /v1 and paths that begin with /v1/.", form: parse.Ref("values")},
	{name: "methods", in: inSelector, doc: "HTTP methods. Any of them matches.", form: parse.Ref("values")},
	{name: "hosts", in: inSelector, doc: "Hosts. Any of them matches.", form: parse.Ref("values")},

	{name: "limit_keys", in: inRules, needed: inRule, doc: "The attributes that identify a bucket: requests with equal values share it. [] is one bucket for all requests.",
		form: parse.ListOf(parse.Ref("attribute"), 0, maxLimitKeys), hint: `list the attributes that identify a bucket, as in ["ip:address"], or [] for one bucket`, rule: (*compiler).readLimitKeys},
	{name: "match", in: inRule, doc: "The requests that it applies to. All clauses must match.", form: parse.Ref("match")},
	{name: "group", in: inRule, form: parse.Ref("name"),
		doc: "Rules of one group are tiers: only the first that matches applies. If absent, rules with the same limit_keys are tiers."},
	{name: "mode", in: inPolicy | inRules, inherited: true, rule: (*compiler).readRuleMode, form: parse.Ref("mode"),
		doc: "Whether it is enforced: off, shadow (decide, but deny nothing), a share of the keys such as 25%, or enforce."},
	{name: "algorithm", in: inRules | inLimit, doc: "The algorithm; token_bucket if absent.", form: parse.Word(algorithmNames()...)},
	{name: "algorithm_config", in: inRules | inLimit, doc: "The numbers of the limit.", form: parse.Schema{"type": "object"}},
	{name: "limits", in: inRules, doc: "Several limits. A request is charged under all of them or none.", form: parse.Schema{"type": "array", "minItems": 1, "maxItems": maxLimits}},
	{name: "on_missing", in: inRules, rule: (*compiler).readOnMissing, label: "If the key is missing", showRule: (*Rule).showMissing, form: parse.Word(missingWords...),
		doc: "The treatment of a request that lacks an attribute of limit_keys: skip (the rule does not apply), deny, or empty (use an empty value)."},
	{name: "on_store_error", in: inRules, rule: (*compiler).readOnStoreError, label: "Without the store", showRule: (*Rule).showStoreError, form: parse.Word(storeErrorWords...),
		doc: "The fallback when the store does not answer: open (allow the request), closed (deny it), or local (decide with a bucket in the process)."},
	{name: "deadline", in: inRules, rule: (*compiler).readDeadline, form: parse.Ref("duration"),
		doc: "How long the store may take before on_store_error applies, from 1ms to 10s; 50ms if absent."},
	{name: "slot_by", in: inBundle | inPolicy | inRules, inherited: true, rule: (*compiler).readSlotBy, form: parse.Ref("attribute"), label: "Slot by", showRule: (*Rule).showSlotBy,
		doc: "An attribute. Keys of rules with it in limit_keys begin with its value, so that a Redis Cluster keeps these buckets in one slot."},
	{name: "headers", in: inBundle | inPolicy | inRules, inherited: true, rule: (*compiler).readHeaders, form: parse.Ref("dialects"), label: "Headers", showRule: (*Rule).showHeaders,
		doc: "The response header fields that report limits: draft-11, legacy, x, several of these, or none."},
	{name: "jitter", in: inBundle | inPolicy | inRules, inherited: true, rule: (*compiler).readJitter, form: parse.Ref("jitter"), label: "Jitter", showRule: (*Rule).showJitter,
		doc: "The random addition to the Retry-After of denied clients: 0, or a share of the wait such as 50%."},
	{name: "description", in: inBundle | inPolicy | inRules, leads: true, doc: "A description for people.", form: parse.Text(maxDescriptionBytes),
		rule: readText("description", maxDescriptionBytes, func(d *draft) *string { return &d.Description })},
	{name: "policies", in: inBundle, needed: inBundle, doc: "The policies of the bundle. All of them apply, each to the requests of its selector.",
		form: parse.ListOf(parse.Ref("entry"), 1, maxPolicies)},

	{name: "tokens_per_second", in: inTokenBucket | inLeakyBucket, doc: "The rate in tokens per second.", form: parse.Ref("amount")},
	{name: "rps", in: inTokenBucket | inLeakyBucket, doc: "The same as tokens_per_second.", form: parse.Ref("amount")},
	{name: "rate", in: inTokenBucket | inLeakyBucket, doc: "The rate as tokens/duration.",
		form: parse.Schema{"type": "string", "pattern": "^[^/]+/[^/]+$", "examples": []string{"7/1m", "1000/1d"}}},
	{name: "burst", in: inTokenBucket, needed: inTokenBucket, form: parse.Ref("extent"),
		doc: "The capacity of the bucket: a number of tokens, or the time that the rate takes to refill it. With 0 and max_reserved, every request waits for its turn."},
	{name: "tokens", in: inWindows, needed: inWindows, doc: "The number of tokens per window.", form: parse.Ref("amount")},
	{name: "window", in: inWindows, needed: inWindows, doc: "The length of the window.", form: parse.Ref("duration")},
	{name: "budget", in: inCostBased, needed: inCostBased, doc: "The number of tokens per period.", form: parse.Ref("amount")},
	{name: "period", in: inCostBased, needed: inCostBased, doc: "The length of the period.", form: parse.Ref("duration")},
	{name: "queue", in: inLeakyBucket, needed: inLeakyBucket, doc: "The size of the queue: a number of tokens, or the longest wait. 0 disables the queue.", form: parse.Ref("extent")},
	{name: "refill", in: inTokenBucket, doc: "continuous, or interval: all tokens of an interval arrive at once.", form: parse.Word(refillWords...)},
	{name: "anchor", in: inTokenBucket | inFixedWindow, form: parse.Word(anchorWords...),
		doc: "When intervals begin: epoch (for all keys together, counted from 1970), key (at a different time for each key), or first (with the first request)."},
	{name: "start", in: inStepped, form: parse.Ref("duration"),
		doc: "The offset of intervals with anchor: epoch. With 7h, days begin at 7:00 UTC. With 4d, weeks begin on Mondays."},
	{name: "capacity", in: inFixedWindow | inLeakyBucket, form: parse.Ref("amount"),
		doc: "For fixed_window: the most tokens, including unused tokens of earlier windows. For leaky_bucket: the most tokens that start at once."},
	{name: "max_reserved", in: inTokenBucket | inFixedWindow, doc: "The most tokens that waiting requests may reserve; 0 is none, absent is no bound.",
		form: parse.Ref("amountOrNone")},
	{name: "cost_key", in: inCostBased, doc: "The same as cost_source.", form: parse.Schema{"type": "string"}},
	{name: "shards", in: inTokenBucket, limit: (*compiler).readShards, label: "Shards", showLimit: (*Limit).showShards,
		doc: "The number of buckets that the limit of a key is split over, for very hot keys.", form: parse.Whole(2, MaxShards)},
	{name: "leased", in: inStepped, limit: (*compiler).readLeased, label: "Leased", showLimit: (*Limit).showLeased,
		doc: "Whether a remote store may hand out tokens in advance.", form: parse.Bool()},
	{name: "staged_actions", in: inStaged, limit: (*compiler).readStages, label: "Stages", showLimit: (*Limit).showStages,
		doc: "Warnings and delays for requests when few tokens are left.", form: parse.ListOf(parse.Ref("stage"), 1, maxStages)},
	{name: "cost_source", in: inLimits, label: "Cost", showLimit: (*Limit).showNamedCost,
		doc:  "The source of a request's cost: fixed, header:NAME, query:NAME or attribute:NAME.",
		form: parse.Schema{"type": "string", "examples": []string{"fixed", "header:x-cost"}}},
	{name: "fixed_cost", in: inLimits, label: "Cost", showLimit: (*Limit).showFixedCost, doc: "The cost of a request; 1 if absent.", form: parse.Ref("amount")},
	{name: "default_cost", in: inLimits, doc: "The cost of a request that names none; 1 if absent.", form: parse.Ref("amount")},
	{name: "min_cost", in: inLimits, doc: "The lowest cost that a request can name.", form: parse.Ref("amount")},
	{name: "max_cost", in: inLimits, doc: "The highest cost that a request can name.", form: parse.Ref("amount")},

	{name: "threshold", in: inStage, doc: "The used share of the capacity, in percent, from which the stage applies.", form: parse.Ref("percent")},
	{name: "threshold_percent", in: inStage, doc: "The same as threshold.", form: parse.Ref("percent")},
	{name: "action", in: inStage, needed: inStage, doc: "warn (send a response header), throttle (delay each request), or reject (only at 100).", form: parse.Word(stageWords...)},
	{name: "delay", in: inStage, doc: "How long each request waits.", form: parse.Ref("duration")},
	{name: "delay_ms", in: inStage, doc: "The same as delay, in milliseconds.", form: parse.Ref("amount")},

	{name: "rules", in: inPolicy, doc: "The rules. Rules with the same limit_keys are tiers: only the first that matches applies. Other rules apply together.",
		form: parse.Schema{"type": "array", "items": parse.Ref("rule"), "maxItems": MaxRules}},
	{name: "fallback_limit", in: inPolicy, doc: "The limit for requests that match none of the rules.", form: parse.Ref("fallback")},

	{name: "overrides", in: inFile, doc: "Exceptions from the rules, until they expire.", form: parse.ListOf(parse.Ref("override"), 0, MaxOverrides)},
	{name: "kill_switches", in: inFile, doc: "Requests that are denied until the switch expires.", form: parse.ListOf(parse.Ref("killSwitch"), 0, MaxOverrides)},
	{name: "global_shadow", in: inFile, doc: "Until it expires, rules deny nothing, but record their decisions.", form: parse.Ref("state")},
	{name: "break_glass", in: inFile, doc: "Until it expires, all requests pass without a decision.", form: parse.Ref("state")},
	{name: "tests", in: inFile, doc: "Requests in virtual time and the expected decisions. mete check runs them.", form: parse.ListOf(parse.Ref("test"), 0, parse.MaxTests)},

	{name: "id", in: inOverride, needed: inOverride, doc: "A unique name, for removing the override.", form: parse.Ref("name")},
	{name: "action", in: inOverride, needed: inOverride, form: parse.Word(actionWords()...),
		doc: "The effect: " + parse.Enumerate(actionWords(), "or") + ". limit replaces the rule's limit."},
	{name: "rules", in: inOverride, doc: "The rules that the override applies to.", form: parse.ListOf(parse.Ref("name"), 1, MaxRules)},
	{name: "match", in: inOverride, doc: "The requests that it applies to. All clauses must match.", form: parse.Ref("match")},
	{name: "key", in: inOverride, doc: "The key of a bucket, as in an explanation, instead of match.", form: parse.Text(MaxKeyBytes)},
	{name: "algorithm", in: inOverride, doc: "The algorithm; token_bucket if absent.", form: parse.Word(algorithmNames()...)},
	{name: "algorithm_config", in: inOverride, doc: "The numbers of the limit.", form: parse.Schema{"type": "object"}},
	{name: "limits", in: inOverride, doc: "Several limits. A request is charged under all of them or none.", form: parse.Schema{"type": "array", "minItems": 1, "maxItems": maxLimits}},
	{name: "enabled", in: inState, doc: "false disables it.", form: parse.Bool()},
	{name: "scope_key", in: inSwitch, needed: inSwitch, doc: "The attribute to match.", form: parse.Ref("attribute")},
	{name: "scope_value", in: inSwitch, needed: inSwitch, doc: "The value of scope_key that is denied.", form: parse.Ref("scalar")},
	{name: "route", in: inSwitch, doc: "The path on which requests are denied; all paths if absent.", form: parse.Text(maxMatchValueBytes)},
	{name: "reason", in: inOverride | inSwitch | inState, needed: inOverride | inSwitch, doc: "Why it exists.", form: parse.NonEmptyText(maxReasonBytes)},
	{name: "author", in: inOverride | inSwitch | inState, needed: inOverride, doc: "The person responsible.", form: parse.NonEmptyText(maxAuthorBytes)},
	{name: "created_at", in: inOverride, doc: "When it was created.", form: parse.Ref("instant")},
	{name: "expires_at", in: inOverride | inSwitch | inState, needed: inOverride | inSwitch, form: parse.Ref("instant"),
		doc: "When it expires. It has no effect from then on."},

	{name: "after", in: inStep, doc: "The time since the last request.", form: parse.Ref("duration")},
	{name: "at", in: inTest | inStep, doc: "A timestamp or, in a step, the time since the test began.",
		form: parse.Schema{"type": "string", "examples": []string{"90s", "2026-01-02T15:04:05Z"}}},
	{name: "request", in: inTest, doc: "The attributes of the requests.", form: parse.Ref("attributes")},
	{name: "with", in: inStep, doc: "Attributes that these requests have in addition or instead.", form: parse.Ref("attributes")},
	{name: "without", in: inStep, doc: "Attributes that these requests lack.", form: parse.Either(parse.Ref("attribute"), parse.ListOf(parse.Ref("attribute"), 1, 10_000))},
	{name: "steps", in: inTest, doc: "Requests in sequence.", form: parse.ListOf(parse.Ref("step"), 1, parse.MaxTestSteps)},
	{name: "times", in: inTest | inStep, doc: "The number of requests; 1 if absent.", form: parse.Whole(1, parse.MaxTestRequests)},
	{name: "every", in: inTest | inStep, doc: "The interval between requests; all at once if absent.", form: parse.Ref("duration")},
	{name: "cost", in: inTest | inStep, doc: "The cost of each request, instead of the cost that the rules set.", form: parse.Ref("amount")},
	{name: "max_wait", in: inTest | inStep, doc: "How long each request may wait.", form: parse.Ref("duration")},
	{name: "expect", in: inTest | inStep, doc: "The expected result: allowed, denied, or an object.", form: parse.Either(parse.Word("allowed", "denied"), parse.Ref("expectation"))},
	{name: "allowed", in: inExpect, doc: "How many requests are allowed; true is all.", form: parse.Ref("count")},
	{name: "denied", in: inExpect, doc: "How many requests are denied, or by which rule.", form: parse.Ref("counts")},
	{name: "rule", in: inExpect, doc: "The rule or limit that decides.", form: parse.Schema{"type": "string"}},
	{name: "reason", in: inExpect, doc: "The reason for denials.", form: parse.Schema{"type": "string"}},
	{name: "retry_after", in: inExpect, doc: "The Retry-After of the last request."},
	{name: "remaining", in: inExpect, doc: "The number of whole tokens that the last request leaves."},
	{name: "cost", in: inExpect, doc: "The cost of each request."},
	{name: "wait", in: inExpect, doc: "How long the last request must wait."},
	{name: "stage", in: inExpect, doc: "The stage that the last request reaches."},
	{name: "override", in: inExpect, doc: "The override that decides."},
	{name: "applies", in: inExpect, doc: "The rules that apply to each request."},
	{name: "would_deny", in: inExpect, doc: "The number of requests that rules in shadow would deny.", form: parse.Ref("counts")},
}
