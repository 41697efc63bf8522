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
	inFile // at the top, beside rules or policies
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

// A field is one row of the table of fields. The parser, the JSON Schema, the YAML writer, the dashboard and
// mete explain know only the content of the row.
type field struct {
	name string
	in   place  // the objects that can have it
	doc  string // its description in the JSON Schema
	form parse.Schema

	needed place  // the objects that must have it
	hint   string // if the field is missing

	leads     bool // people write it first, regardless of its place in the table
	inherited bool // policies inherit it from their bundle, and rules from their policy

	// rule and limit read the field of a rule (or of its policy) or of a limit with a known bucket. Both are
	// nil for a field that its object reads together with others.
	rule  func(*compiler, *draft, *parse.Node)
	limit func(*compiler, *Limit, *parse.Node)

	// label and one of the functions show the field on the rules page and in explanations: see [Fact]. An empty
	// value shows nothing.
	label     string
	showRule  func(*Rule) (value string, notable bool)
	showLimit func(*Limit) (value string, notable bool)
}

// fields are all fields of the language, in the order of messages and YAML. A name has several rows if its
// meaning differs between objects.
var fields = []field{
	{name: "bundle_version", in: inBundle, doc: "Grows with every change of the bundle: a server keeps the one with the higher version.",
		form: parse.Schema{"type": "integer", "minimum": 1}},
	{name: "issued_at", in: inBundle, doc: "When the bundle was made.", form: parse.Ref("instant")},
	{name: "expires_at", in: inBundle, doc: "Until when it may be put in force; one that is stays, and the log says so.", form: parse.Ref("instant")},
	{name: "id", in: inEntry, needed: inEntry, leads: true, doc: "The name of the policy.", form: parse.Ref("name")},
	{name: "spec", in: inEntry, needed: inEntry, doc: "The policy.", form: parse.Ref("policy")},
	{name: "name", in: inRules, needed: inRule, leads: true, doc: "What headers, metrics and keys call it. Unique in the file.",
		form: parse.Ref("name"), hint: "every rule has a name of its own", rule: (*compiler).readRuleName},
	{name: "name", in: inLimit, doc: "What the limit is called behind its rule's name: rule/name.",
		form: parse.Schema{"type": "string", "minLength": 1, "maxLength": maxLimitNameBytes, "pattern": `^[ -~]+$`}},
	{name: "name", in: inTest, needed: inTest, doc: "What the test shows, in words.", form: parse.Filled(parse.MaxTestName)},

	{name: "selector", in: inPolicy, leads: true, doc: "Which requests the policy is about; all if it is absent.", form: parse.Ref("selector")},
	{name: "pathExact", in: inSelector, doc: "Paths.", form: parse.Ref("values")},
	{name: "pathPrefix", in: inSelector, doc: "Beginnings of paths, in whole segments: /v1 is /v1 itself and what begins with /v1/.", form: parse.Ref("values")},
	{name: "methods", in: inSelector, doc: "Methods, of which the request has one.", form: parse.Ref("values")},
	{name: "hosts", in: inSelector, doc: "Hosts, of which the request has one.", form: parse.Ref("values")},

	{name: "limit_keys", in: inRules, needed: inRule, doc: "Attributes: requests with equal values share a bucket. [] is one bucket for all.",
		form: parse.ListOf(parse.Ref("attribute"), 0, maxLimitKeys), hint: `say who shares a bucket: ["ip:address"], or [] for all`, rule: (*compiler).readLimitKeys},
	{name: "match", in: inRule, doc: "Which requests it is about; all of the clauses must hold.", form: parse.Ref("match")},
	{name: "group", in: inRule, form: parse.Ref("name"),
		doc: "Rules of one group are tiers: the first that matches counts. Those with the same limit_keys are, if it is absent."},
	{name: "mode", in: inPolicy | inRules, inherited: true, rule: (*compiler).readRuleMode, form: parse.Ref("mode"),
		doc: "How far it is in force: off, shadow (decide, and deny nobody), a share of the keys such as 25%, or enforce."},
	{name: "algorithm", in: inRules | inLimit, doc: "How it limits; token_bucket if it is absent.", form: parse.Word(algorithmNames()...)},
	{name: "algorithm_config", in: inRules | inLimit, doc: "The numbers of the limit.", form: parse.Schema{"type": "object"}},
	{name: "limits", in: inRules, doc: "Several limits, which charge together.", form: parse.Schema{"type": "array", "minItems": 1, "maxItems": maxLimits}},
	{name: "on_missing", in: inRules, rule: (*compiler).readOnMissing, label: "If the key is missing", showRule: (*Rule).showMissing, form: parse.Word(missingWords...),
		doc: "What becomes of a request that lacks an attribute of limit_keys: skip (the rule does not apply), deny, or empty (take it as empty)."},
	{name: "on_store_error", in: inRules, rule: (*compiler).readOnStoreError, label: "Without the store", showRule: (*Rule).showStoreError, form: parse.Word(storeErrorWords...),
		doc: "What becomes of a request when the store does not answer: open (let it through), closed (refuse it), or local (decide in the process, by its share)."},
	{name: "deadline", in: inRules, rule: (*compiler).readDeadline, form: parse.Ref("duration"),
		doc: "How long the store may take until on_store_error applies, from 1ms to 10s; 50ms if it is absent."},
	{name: "slot_by", in: inBundle | inPolicy | inRules, inherited: true, rule: (*compiler).readSlotBy, form: parse.Ref("attribute"), label: "Slot by", showRule: (*Rule).showSlotBy,
		doc: "An attribute whose value begins the keys of rules that have it in limit_keys, so that its buckets are in one slot of a Redis Cluster."},
	{name: "headers", in: inBundle | inPolicy | inRules, inherited: true, rule: (*compiler).readHeaders, form: parse.Ref("dialects"), label: "Headers", showRule: (*Rule).showHeaders,
		doc: "The header fields in which limits are shown: draft-11, legacy, x, several of these, or none."},
	{name: "jitter", in: inBundle | inPolicy | inRules, inherited: true, rule: (*compiler).readJitter, form: parse.Ref("jitter"), label: "Jitter", showRule: (*Rule).showJitter,
		doc: "How far the waits that denied clients are told are spread: 0, or a share of the wait such as 50%."},
	{name: "description", in: inBundle | inPolicy | inRules, leads: true, doc: "For people.", form: parse.Text(maxDescriptionBytes),
		rule: readText("description", maxDescriptionBytes, func(d *draft) *string { return &d.Description })},
	{name: "policies", in: inBundle, needed: inBundle, doc: "The policies of the bundle. All of them apply, each to the requests of its selector.",
		form: parse.ListOf(parse.Ref("entry"), 1, maxPolicies)},

	{name: "tokens_per_second", in: inTokenBucket | inLeakyBucket, doc: "The rate.", form: parse.Ref("amount")},
	{name: "rps", in: inTokenBucket | inLeakyBucket, doc: "The rate, in tokens a second.", form: parse.Ref("amount")},
	{name: "rate", in: inTokenBucket | inLeakyBucket, doc: "The rate, as tokens/duration.",
		form: parse.Schema{"type": "string", "pattern": "^[^/]+/[^/]+$", "examples": []string{"7/1m", "1000/1d"}}},
	{name: "burst", in: inTokenBucket, needed: inTokenBucket, form: parse.Ref("extent"),
		doc: "The most a bucket holds: a number of tokens, or how long the rate takes to refill it; 0, with max_reserved, lets every request wait for its turn."},
	{name: "tokens", in: inWindows, needed: inWindows, doc: "How many tokens a window has.", form: parse.Ref("amount")},
	{name: "window", in: inWindows, needed: inWindows, doc: "How long the window is.", form: parse.Ref("duration")},
	{name: "budget", in: inCostBased, needed: inCostBased, doc: "How much a period has.", form: parse.Ref("amount")},
	{name: "period", in: inCostBased, needed: inCostBased, doc: "How long the period is.", form: parse.Ref("duration")},
	{name: "queue", in: inLeakyBucket, needed: inLeakyBucket, doc: "How many tokens can wait, or how long the last of them does; 0 lets none wait.", form: parse.Ref("extent")},
	{name: "refill", in: inTokenBucket, doc: "continuous, or interval: what an interval brings comes all at once.", form: parse.Word(refillWords...)},
	{name: "anchor", in: inTokenBucket | inFixedWindow, form: parse.Word(anchorWords...),
		doc: "Where intervals begin: epoch, all together, from 1970; key, for each key at another time; first, with the first request."},
	{name: "start", in: inStepped, form: parse.Ref("duration"),
		doc: "How long after 1970 the intervals of anchor: epoch begin: 7h makes days begin at 7:00 UTC, 4d weeks on Mondays."},
	{name: "capacity", in: inFixedWindow | inLeakyBucket, form: parse.Ref("amount"),
		doc: "The most it holds. Of fixed_window: unused tokens are left to later windows, up to that. Of leaky_bucket: how many start at once."},
	{name: "max_reserved", in: inTokenBucket | inFixedWindow, doc: "The most tokens that requests may owe which can wait; 0 is none, absent is no bound.",
		form: parse.Ref("amountOrNone")},
	{name: "cost_key", in: inCostBased, doc: "The same as cost_source.", form: parse.Schema{"type": "string"}},
	{name: "shards", in: inTokenBucket, limit: (*compiler).readShards, label: "Shards", showLimit: (*Limit).showShards,
		doc: "How many buckets each is split over, for keys that are too hot for one.", form: parse.Whole(2, MaxShards)},
	{name: "leased", in: inStepped, limit: (*compiler).readLeased, label: "Leased", showLimit: (*Limit).showLeased,
		doc: "Whether a store that is far away may hand out tokens in advance.", form: parse.Bool()},
	{name: "staged_actions", in: inStaged, limit: (*compiler).readStages, label: "Stages", showLimit: (*Limit).showStages,
		doc: "What becomes of requests when little is left, before they are denied.", form: parse.ListOf(parse.Ref("stage"), 1, maxStages)},
	{name: "cost_source", in: inLimits, label: "Cost", showLimit: (*Limit).showNamedCost,
		doc:  "Where the cost of a request stands: fixed, header:NAME, query:NAME or attribute:NAME.",
		form: parse.Schema{"type": "string", "examples": []string{"fixed", "header:x-cost"}}},
	{name: "fixed_cost", in: inLimits, label: "Cost", showLimit: (*Limit).showFixedCost, doc: "What a request costs; 1 if it is absent.", form: parse.Ref("amount")},
	{name: "default_cost", in: inLimits, doc: "What a request costs that names no cost; 1 if it is absent.", form: parse.Ref("amount")},
	{name: "min_cost", in: inLimits, doc: "The least that a request can cost which names its cost.", form: parse.Ref("amount")},
	{name: "max_cost", in: inLimits, doc: "The most that a request can cost which names its cost.", form: parse.Ref("amount")},

	{name: "threshold", in: inStage, doc: "How much is used where the stage begins, in percent.", form: parse.Ref("percent")},
	{name: "threshold_percent", in: inStage, doc: "The same as threshold.", form: parse.Ref("percent")},
	{name: "action", in: inStage, needed: inStage, doc: "warn (say so in a header), throttle (delay each request), or reject, at 100.", form: parse.Word(stageWords...)},
	{name: "delay", in: inStage, doc: "How long each request waits.", form: parse.Ref("duration")},
	{name: "delay_ms", in: inStage, doc: "The same as delay, in milliseconds.", form: parse.Ref("amount")},

	{name: "rules", in: inPolicy, doc: "Rules. Those with the same limit_keys are tiers, of which the first that matches counts; others apply together.",
		form: parse.Schema{"type": "array", "items": parse.Ref("rule"), "maxItems": MaxRules}},
	{name: "fallback_limit", in: inPolicy, doc: "The limit of requests that fall under none of the rules.", form: parse.Ref("fallback")},

	{name: "overrides", in: inFile, doc: "Exceptions from the rules, until they expire.", form: parse.ListOf(parse.Ref("override"), 0, MaxOverrides)},
	{name: "kill_switches", in: inFile, doc: "Requests that are denied, until the switch expires.", form: parse.ListOf(parse.Ref("killSwitch"), 0, MaxOverrides)},
	{name: "global_shadow", in: inFile, doc: "Rules deny nobody, and say what they would have done, until it expires.", form: parse.Ref("state")},
	{name: "break_glass", in: inFile, doc: "Nothing is decided, and all pass, until it expires.", form: parse.Ref("state")},
	{name: "tests", in: inFile, doc: "Requests in virtual time, and what is expected of the decisions. mete check runs them.", form: parse.ListOf(parse.Ref("test"), 0, parse.MaxTests)},

	{name: "id", in: inOverride, needed: inOverride, doc: "A name by which the override can be removed.", form: parse.Ref("name")},
	{name: "action", in: inOverride, needed: inOverride, form: parse.Word(actionWords()...),
		doc: "What it does: " + parse.Enumerate(actionWords(), "or") + ". limit is another limit than the rule's."},
	{name: "rules", in: inOverride, doc: "The names of the rules that the override is about.", form: parse.ListOf(parse.Ref("name"), 1, MaxRules)},
	{name: "match", in: inOverride, doc: "Which requests it is about; all of the clauses must hold.", form: parse.Ref("match")},
	{name: "key", in: inOverride, doc: "A bucket's key, as an explanation shows it, in place of match.", form: parse.Text(MaxKeyBytes)},
	{name: "algorithm", in: inOverride, doc: "How it limits; token_bucket if it is absent.", form: parse.Word(algorithmNames()...)},
	{name: "algorithm_config", in: inOverride, doc: "The numbers of the limit.", form: parse.Schema{"type": "object"}},
	{name: "limits", in: inOverride, doc: "Several limits, which charge together.", form: parse.Schema{"type": "array", "minItems": 1, "maxItems": maxLimits}},
	{name: "enabled", in: inState, doc: "false is as if it were not there.", form: parse.Bool()},
	{name: "scope_key", in: inSwitch, needed: inSwitch, doc: "The attribute whose value is denied.", form: parse.Ref("attribute")},
	{name: "scope_value", in: inSwitch, needed: inSwitch, doc: "Its value.", form: parse.Ref("scalar")},
	{name: "route", in: inSwitch, doc: "The path on which it is denied; all if it is absent.", form: parse.Text(maxMatchValueBytes)},
	{name: "reason", in: inOverride | inSwitch | inState, needed: inOverride | inSwitch, doc: "Why it is there: people will ask.", form: parse.Filled(maxReasonBytes)},
	{name: "author", in: inOverride | inSwitch | inState, needed: inOverride, doc: "Who is to be asked about it.", form: parse.Filled(maxAuthorBytes)},
	{name: "created_at", in: inOverride, doc: "When it was made.", form: parse.Ref("instant")},
	{name: "expires_at", in: inOverride | inSwitch | inState, needed: inOverride | inSwitch, form: parse.Ref("instant"),
		doc: "Until when it holds: from then on it is as if it were not there."},

	{name: "after", in: inStep, doc: "How long after the last request.", form: parse.Ref("duration")},
	{name: "at", in: inTest | inStep, doc: "When: how long after the test began, or an instant.",
		form: parse.Schema{"type": "string", "examples": []string{"90s", "2026-01-02T15:04:05Z"}}},
	{name: "request", in: inTest, doc: "The attributes of the requests.", form: parse.Ref("attributes")},
	{name: "with", in: inStep, doc: "Attributes that these requests have instead, or besides.", form: parse.Ref("attributes")},
	{name: "without", in: inStep, doc: "Attributes that these requests lack.", form: parse.Either(parse.Ref("attribute"), parse.ListOf(parse.Ref("attribute"), 1, 10_000))},
	{name: "steps", in: inTest, doc: "Requests, one step after the other.", form: parse.ListOf(parse.Ref("step"), 1, parse.MaxTestSteps)},
	{name: "times", in: inTest | inStep, doc: "How many requests; 1 if it is absent.", form: parse.Whole(1, parse.MaxTestRequests)},
	{name: "every", in: inTest | inStep, doc: "How long it is from one request to the next; all at once if it is absent.", form: parse.Ref("duration")},
	{name: "cost", in: inTest | inStep, doc: "What each request costs, in place of the rules' own.", form: parse.Ref("amount")},
	{name: "max_wait", in: inTest | inStep, doc: "How long each request may wait.", form: parse.Ref("duration")},
	{name: "expect", in: inTest | inStep, doc: "What is expected: allowed, denied, or more.", form: parse.Either(parse.Word("allowed", "denied"), parse.Ref("expectation"))},
	{name: "allowed", in: inExpect, doc: "How many requests are allowed; true is all.", form: parse.Ref("count")},
	{name: "denied", in: inExpect, doc: "How many requests are denied, or by which rule.", form: parse.Ref("counts")},
	{name: "rule", in: inExpect, doc: "The rule, or limit, that decides.", form: parse.Schema{"type": "string"}},
	{name: "reason", in: inExpect, doc: "The reason of denials.", form: parse.Schema{"type": "string"}},
	{name: "retry_after", in: inExpect, doc: "When the last denied request may come back."},
	{name: "remaining", in: inExpect, doc: "How many whole tokens the last request leaves."},
	{name: "cost", in: inExpect, doc: "What each request costs."},
	{name: "wait", in: inExpect, doc: "How long the last request has to wait."},
	{name: "stage", in: inExpect, doc: "The stage that the last request reaches."},
	{name: "override", in: inExpect, doc: "The override that decides."},
	{name: "applies", in: inExpect, doc: "The rules that each request falls under."},
	{name: "would_deny", in: inExpect, doc: "How many requests rules in shadow would deny.", form: parse.Ref("counts")},
}
