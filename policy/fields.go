// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/http"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/denialbody"
	"github.com/metehq/mete/internal/parse"
)

// A place is a set of objects of the policy language.
type place uint64

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
	inConcurrency
	inLLM
	inLLMConfig // an algorithm_config of token_bucket_llm
	inSelector
	inStage
	inChargeOn
	inDenial
	inActive
	inOverride
	inSwitch
	inState
	inTest
	inStep
	inExpect
	inPenalty
	inWeights
	inTokenSource
	inStreaming
	inPrices
	inPriceFile
	inLoop
	inBreaker
	inUsage

	inRules   = inRule | inFallback
	inWindows = inFixedWindow | inSlidingWindow | inSlidingLog
	inStepped = inTokenBucket | inFixedWindow | inCostBased
	inStaged  = inTokenBucket | inWindows | inCostBased
	inCharged = inStaged | inLeakyBucket // limits that a request charges a cost
	inLimits  = inCharged | inConcurrency | inLLM
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

	{name: "limit_keys", in: inRules, needed: inRule, doc: "The attributes that identify a bucket: requests with equal values share it. [] is one bucket for all requests. A rule with the bucket of an earlier rule can omit them.",
		form: parse.ListOf(parse.Ref("attribute"), 0, maxLimitKeys), hint: `list the attributes that identify a bucket, as in ["ip:address"], or [] for one bucket`, rule: (*compiler).readLimitKeys},
	{name: "match", in: inRule, doc: "The requests that it applies to. All clauses must match. In a list, one of the alternatives must match.", form: parse.Ref("match")},
	{name: "group", in: inRule, form: parse.Ref("name"),
		doc: "Rules of one group are tiers: only the first that matches applies. If absent, rules with the same limit_keys are tiers."},
	{name: "active", in: inRule, rule: (*compiler).readActive, label: "Active", showRule: (*Rule).showActive, form: parse.Ref("active"),
		doc: "When the rule applies, by the clocks of a time zone; always if absent."},
	{name: "days", in: inActive, doc: "The weekdays on which the rule applies; every day if absent.", form: parse.ListOf(parse.Ref("weekday"), 1, 7)},
	{name: "hours", in: inActive, form: parse.Either(parse.Ref("hours"), parse.ListOf(parse.Ref("hours"), 1, maxActiveHours)),
		doc: "The hours in which the rule applies; all hours if absent. Hours over midnight belong to the day on which they begin."},
	{name: "timezone", in: inActive, doc: "The time zone of days and hours, by its name in the IANA database; UTC if absent.", form: parse.Ref("zone")},
	{name: "bucket", in: inRule, rule: (*compiler).readBucketName, form: parse.Ref("name"), label: "Bucket", showRule: (*Rule).showBucket,
		doc: "The name of a bucket that rules share, each with its own cost. The first of them has the limit_keys and the limit."},
	{name: "mode", in: inPolicy | inRules, inherited: true, rule: (*compiler).readRuleMode, form: parse.Ref("mode"),
		doc: "Whether it is enforced: off, shadow (decide, but deny nothing), a share of the keys such as 25%, or enforce."},
	{name: "algorithm", in: inRules | inLimit, doc: "The algorithm; token_bucket if absent.", form: parse.Word(algorithmNames()...)},
	{name: "algorithm_config", in: inRules | inLimit, doc: "The numbers of the limit, unless the rule has them itself.", form: parse.Schema{"type": "object"}},
	{name: "limits", in: inRules, doc: "Several limits. A request is charged under all of them or none.", form: parse.Schema{"type": "array", "minItems": 1, "maxItems": maxLimits}},

	{name: "tokens_per_second", in: inTokenBucket | inLeakyBucket, doc: "The rate in tokens per second.", form: parse.Ref("amount")},
	{name: "rps", in: inTokenBucket | inLeakyBucket, doc: "The same as tokens_per_second.", form: parse.Ref("amount")},
	{name: "rate", in: inTokenBucket | inLeakyBucket, doc: "The rate as tokens/duration.",
		form: parse.Schema{"type": "string", "pattern": "^[^/]+/[^/]+$", "examples": []string{"7/1m", "1000/1d"}}},
	{name: "burst", in: inTokenBucket, form: parse.Ref("extent"),
		doc: "The capacity of the bucket: a number of tokens, or the time that the rate takes to refill it. If absent, it is the tokens of the rate. With 0 and max_reserved, every request waits for its turn."},
	{name: "tokens", in: inWindows, needed: inWindows, doc: "The number of tokens per window.", form: parse.Ref("amount")},
	{name: "window", in: inFixedWindow, needed: inFixedWindow, doc: "The length of the window: a duration, or day, week, month or year by the clocks of timezone.", form: parse.Ref("window")},
	{name: "window", in: inSlidingWindow | inSlidingLog, needed: inSlidingWindow | inSlidingLog, doc: "The length of the window.", form: parse.Ref("duration")},
	{name: "budget", in: inCostBased, needed: inCostBased, doc: "The number of tokens per period.", form: parse.Ref("amount")},
	{name: "period", in: inCostBased, needed: inCostBased, doc: "The length of the period: a duration, or day, week, month or year by the clocks of timezone.", form: parse.Ref("window")},
	{name: "queue", in: inLeakyBucket, needed: inLeakyBucket, doc: "The size of the queue: a number of tokens, or the longest wait. 0 disables the queue.", form: parse.Ref("extent")},
	{name: "max", in: inConcurrency, needed: inConcurrency, doc: "The number of slots: the most requests that run at the same time.", form: parse.Whole(1, bucket.MaxSlots)},
	{name: "lease", in: inConcurrency, needed: inConcurrency, form: parse.Ref("duration"),
		doc: "How long a slot is held unless its request ends or renews it, from 1s to 1d. The slots of a crashed process are free after that time."},
	{name: "refill", in: inTokenBucket, doc: "continuous, or interval: all tokens of an interval arrive at once.", form: parse.Word(refillWords...)},
	{name: "anchor", in: inTokenBucket | inFixedWindow, form: parse.Word(anchorWords...),
		doc: "When intervals begin: epoch (for all keys together, counted from 1970), key (at a different time for each key), or first (with the first request)."},
	{name: "start", in: inTokenBucket, form: parse.Ref("duration"),
		doc: "The offset of intervals with anchor: epoch. With 7h, days begin at 7:00 UTC. With 4d, weeks begin on Mondays."},
	{name: "start", in: inFixedWindow | inCostBased, form: parse.Ref("start"),
		doc: "The offset of intervals with anchor: epoch: with 7h, days begin at 7:00 UTC. For calendar windows, the time of day at which they begin, as in \"07:00\"."},
	{name: "timezone", in: inFixedWindow | inCostBased, form: parse.Ref("zone"),
		doc: "The time zone of calendar windows, by its name in the IANA database; UTC if absent."},
	{name: "start_day", in: inFixedWindow | inCostBased, form: parse.Ref("startDay"),
		doc: "The first day of calendar windows: a weekday for weeks, a number from 1 to 28 for months, month-day such as 04-06 for years."},
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
	{name: "penalty", in: inRules | inCharged | inLLM, rule: (*compiler).readRulePenalty, limit: (*compiler).readPenalty, label: "Penalty", showLimit: (*Limit).showPenalty, form: parse.Ref("penalty"),
		doc: "How long a denied key stays denied: one length, or lengths that grow from first to most. A rule gives it to all of its limits."},
	{name: "first", in: inPenalty, needed: inPenalty, doc: "The length of the first penalty.", form: parse.Ref("duration")},
	{name: "factor", in: inPenalty, needed: inPenalty, doc: "The growth of each further penalty, above 1.", form: parse.Ref("amount")},
	{name: "most", in: inPenalty, needed: inPenalty, doc: "The longest length. After this time without a new penalty, the next one has the first length again.", form: parse.Ref("duration")},
	{name: "cost_source", in: inCharged, label: "Cost", showLimit: (*Limit).showNamedCost,
		doc:  "The source of a request's cost: fixed, header:NAME, query:NAME, attribute:NAME, or response_header:NAME, which the response names. ai:tokens counts the tokens of a language model, and ai:money their prices.",
		form: parse.Schema{"type": "string", "examples": []string{"fixed", "header:x-cost", "response_header:x-cost"}}},
	{name: "fixed_cost", in: inCharged, label: "Cost", showLimit: (*Limit).showFixedCost, doc: "The cost of a request; 1 if absent.", form: parse.Ref("amount")},
	{name: "default_cost", in: inCharged, doc: "The cost of a request that names none; 1 if absent.", form: parse.Ref("amount")},
	{name: "min_cost", in: inCharged, doc: "The lowest cost that a request or a response can name.", form: parse.Ref("amount")},
	{name: "max_cost", in: inCharged, doc: "The highest cost that a request or a response can name.", form: parse.Ref("amount")},
	{name: "algorithm", in: inLLMConfig, doc: "The algorithm of the rule again.", form: parse.Word("token_bucket_llm")},
	{name: "tokens_per_minute", in: inLLM, needed: inLLM, doc: "The tokens of prompts and completions per minute.", form: parse.Ref("amount")},
	{name: "tokens_per_day", in: inLLM, doc: "The tokens of prompts and completions per day in UTC; no bound if absent.", form: parse.Ref("amount")},
	{name: "burst_tokens", in: inLLM, doc: "The most tokens at once; tokens_per_minute if absent.", form: parse.Ref("amount")},
	{name: "max_prompt_tokens", in: inLLM, doc: "The most tokens of one prompt. A request with more is denied.", form: parse.Whole(1, maxAITokens)},
	{name: "max_tokens_per_request", in: inLLM, doc: "The most tokens of one request, prompt and completion together. A request with more is denied.", form: parse.Whole(1, maxAITokens)},
	{name: "max_completion_tokens", in: inCharged | inLLM, doc: "The most tokens of a completion that a request reserves.", form: parse.Whole(1, maxAITokens)},
	{name: "default_max_completion", in: inCharged | inLLM, doc: "The tokens of the completion that a request reserves if it asks for no number; 1000 if absent.", form: parse.Whole(1, maxAITokens)},
	{name: "default_max_completion_tokens", in: inLLM, doc: "The same as default_max_completion.", form: parse.Whole(1, maxAITokens)},
	{name: "token_source", in: inCharged | inLLM, doc: "The estimate of a prompt.", form: parse.Ref("tokenSource")},
	{name: "estimator", in: inTokenSource, form: parse.Word(estimators...),
		doc: "simple_word (a token per four characters), header_hint (X-Token-Estimate), tiktoken (OpenAI's tokenizer), or learned (the ratio of earlier requests of the model)."},
	{name: "weights", in: inCharged | inLLM, label: "Weights", showLimit: (*Limit).showWeights, doc: "The cost of one token by its class.", form: parse.Ref("weights")},
	{name: "input", in: inWeights, doc: "Tokens of the prompt.", form: parse.Ref("amountOrNone")},
	{name: "cached", in: inWeights, doc: "Tokens of the prompt from the provider's cache; as input if absent.", form: parse.Ref("amountOrNone")},
	{name: "cache_write", in: inWeights, doc: "Tokens of the prompt that the provider writes to its cache; as input if absent.", form: parse.Ref("amountOrNone")},
	{name: "output", in: inWeights, doc: "Tokens of the completion.", form: parse.Ref("amountOrNone")},
	{name: "reasoning", in: inWeights, doc: "Tokens of the completion that the client does not see; as output if absent.", form: parse.Ref("amountOrNone")},
	{name: "streaming", in: inCharged | inLLM, doc: "The treatment of a stream with more tokens than its request reserved.", form: parse.Ref("streaming")},
	{name: "enabled", in: inStreaming, doc: "false never ends a stream.", form: parse.Bool()},
	{name: "buffer_tokens", in: inStreaming, doc: "The tokens between two charges of a stream; 100 if absent.", form: parse.Whole(1, maxStreamTokens)},
	{name: "on_limit_exceeded", in: inStreaming, form: parse.Word(streamWords...),
		doc: "The end of a stream when the limit has no tokens for the rest. continue: the limit owes them. graceful_close: it ends as at the model's maximum. error_chunk: it ends with the provider's error."},
	{name: "include_partial_usage", in: inStreaming, doc: "Whether a closed stream ends with the usage until then; true if absent.", form: parse.Bool()},
	{name: "ask_usage", in: inStreaming, form: parse.Bool(),
		doc: "Whether mete adds stream_options.include_usage to streams of OpenAI's chat and completions; true if absent. false is for servers that reject this member: the tokens of the stream are then estimated."},
	{name: loopName, in: inPolicy, form: parse.Ref("loop"), doc: "The treatment of identical requests of a client: it becomes the rule loop_detection."},
	{name: "enabled", in: inLoop | inBreaker, doc: "Whether it applies; false if absent.", form: parse.Bool()},
	{name: "window_seconds", in: inLoop, doc: "The seconds in which identical requests are counted, from the first of them.", form: parse.Whole(1, maxLoopWindow)},
	{name: "threshold_identical_requests", in: inLoop, doc: "The number of identical requests from which the action applies.", form: parse.Whole(2, maxLoopThreshold)},
	{name: "action", in: inLoop, doc: "reject (deny the request until the window ends), throttle (wait 100 ms for each identical request), or warn (send a response header); reject if absent.", form: parse.Word(loopWords...)},
	{name: "similarity", in: inLoop, doc: "exact: the method, the path, the query and the body are the same.", form: parse.Word("exact")},
	{name: breakerName, in: inPolicy, form: parse.Ref("breaker"), doc: "The denial of a key that spends too much within a minute: it becomes the rule circuit_breaker."},
	{name: "spend_rate_threshold_per_minute", in: inBreaker, doc: "The cost of requests within a minute that opens the breaker.", form: parse.Ref("amount")},
	{name: "action", in: inBreaker, doc: "reject: an open breaker denies all requests.", form: parse.Word("reject")},
	{name: "auto_reset_after_minutes", in: inBreaker, doc: "The minutes until an open breaker closes; 0 or absent until an administrator resets its bucket.", form: parse.Whole(0, maxResetMinutes)},
	{name: "alert", in: inBreaker, doc: "Accepted for files of other products: every denial by a breaker is in the log and in a metric.", form: parse.Bool()},
	{name: "prices", in: inFile | inBundle, label: "Prices", showLimit: (*Limit).showPrices, doc: "The prices of language models, for cost_source: ai:money, or the file that has them.", form: parse.Ref("prices")},
	{name: "file", in: inPriceFile, needed: inPriceFile, doc: "The file with the prices, relative to the policy. The other fields of prices are in it.", form: parse.NonEmptyText(maxPriceFile)},
	{name: "version", in: inPrices, needed: inPrices, doc: "The version of the prices.", form: parse.NonEmptyText(MaxNameBytes)},
	{name: "date", in: inPrices, doc: "The day on which the prices were written, as in 2026-11-01.", form: parse.Schema{"type": "string", "pattern": `^\d{4}-\d{2}-\d{2}$`}},
	{name: "unit", in: inPrices, doc: "The unit of the prices and of budgets in money, for people: as in US cent.", form: parse.NonEmptyText(MaxNameBytes)},
	{name: "models", in: inPrices, needed: inPrices, form: parse.Schema{"type": "object", "minProperties": 1, "maxProperties": maxModels, "additionalProperties": parse.Schema{"allOf": schemas{parse.Ref("weights"), parse.Having("input", "output")}}},
		doc: "The prices of a million tokens by model. A name can end in *. A model without an entry has the highest prices of the list."},
	{name: "charge_on", in: inRules | inCharged | inLLM, form: parse.Ref("chargeOn"), rule: (*compiler).readRuleChargeOn, label: "Charged on", showLimit: (*Limit).showChargeOn,
		doc: "The outcomes of requests that are charged. Every request is charged on arrival, and refunded after another outcome. In a rule, it applies to limits without their own."},
	{name: "status", in: inChargeOn, doc: "The HTTP statuses that are charged: numbers such as 401, and classes such as 5xx.", form: parse.ListOf(parse.Either(
		parse.Whole(firstStatus, endStatus-1), parse.Schema{"const": 101}, parse.Schema{"type": "string", "pattern": "^([2-5]xx|[2-5][0-9][0-9]|101)$"}), 1, maxOutcomes)},
	{name: "grpc", in: inChargeOn, doc: "The gRPC status codes that are charged, such as UNAUTHENTICATED.", form: parse.ListOf(parse.Word(GRPCCodes()...), 1, len(grpcCodes))},
	{name: "response_bytes", in: inChargeOn, doc: "The number of bytes of the response body per token, as in 1KiB. The size of the body is then the cost, instead of default_cost.",
		form: parse.Either(parse.Whole(1, maxUnit), parse.Schema{"type": "string", "pattern": "^[0-9]+([kMGT]?B|[KMGT]iB)?$"})},

	{name: "on_missing", in: inRules, rule: (*compiler).readOnMissing, label: "If the key is missing", showRule: (*Rule).showMissing, form: parse.Word(missingWords...),
		doc: "The treatment of a request that lacks an attribute of limit_keys: skip (the rule does not apply), deny, or empty (use an empty value)."},
	{name: "on_store_error", in: inRules, rule: (*compiler).readOnStoreError, label: "Without the store", showRule: (*Rule).showStoreError, form: parse.Word(storeErrorWords...),
		doc: "The fallback when the store does not answer: open (allow the request), closed (deny it), or local (decide with a bucket in the process)."},
	{name: "on_full", in: inRules, rule: (*compiler).readOnFull, label: "Without memory", showRule: (*Rule).showOnFull, form: parse.Word(fullWords...),
		doc: "The treatment of a new key when the store in memory is full. share gives all such keys one bucket, open lets requests pass this rule, and closed denies them. Other stores ignore it."},
	{name: "deadline", in: inRules, rule: (*compiler).readDeadline, form: parse.Ref("duration"),
		doc: "How long the store may take before on_store_error applies, from 1ms to 10s; 50ms if absent."},
	{name: "slot_by", in: inBundle | inPolicy | inRules, inherited: true, rule: (*compiler).readSlotBy, form: parse.Ref("attribute"), label: "Slot by", showRule: (*Rule).showSlotBy,
		doc: "An attribute. Keys of rules with it in limit_keys begin with its value, so that a Redis Cluster keeps these buckets in one slot."},
	{name: "headers", in: inBundle | inPolicy | inRules, inherited: true, rule: (*compiler).readHeaders, form: parse.Ref("dialects"), label: "Headers", showRule: (*Rule).showHeaders,
		doc: "The response header fields that report limits: draft-11, legacy, x, several of these, or none."},
	{name: "jitter", in: inBundle | inPolicy | inRules, inherited: true, rule: (*compiler).readJitter, form: parse.Ref("jitter"), label: "Jitter", showRule: (*Rule).showJitter,
		doc: "The random addition to the Retry-After of denied clients: 0, or a share of the wait such as 50%."},
	{name: "denial", in: inBundle | inPolicy | inRules, inherited: true, rule: (*compiler).readDenial, form: parse.Ref("denial"), label: "Denial", showRule: (*Rule).showDenial,
		doc: "The response to denied requests over HTTP: a format of error, or a body with placeholders. A rule replaces all of its policy's denial."},
	{name: "status", in: inDenial, doc: "The HTTP status from 400 to 599, except statuses that require a further header field; 429 if absent.",
		form: parse.Whole(denialbody.MinStatus, denialbody.MaxStatus)},
	{name: "format", in: inDenial, doc: "The error format that clients of an API expect: problem (RFC 9457), openai, anthropic or gemini.", form: parse.Word(denialbody.Formats...)},
	{name: "body", in: inDenial, doc: "The body, with placeholders such as {{retry_after}}.", form: parse.Text(denialbody.MaxBodyBytes)},
	{name: "content_type", in: inDenial, doc: "The type of the body: JSON, XML, text/html or text/plain. If absent, a body that begins with a brace is JSON, and another is plain text.",
		form: parse.NonEmptyText(denialbody.MaxContentTypeBytes)},
	{name: "description", in: inBundle | inPolicy | inRules, leads: true, doc: "A description for people.", form: parse.Text(maxDescriptionBytes),
		rule: readText("description", maxDescriptionBytes, func(d *draft) *string { return &d.Description })},
	{name: "policies", in: inBundle, needed: inBundle, doc: "The policies of the bundle. All of them apply, each to the requests of its selector.",
		form: parse.ListOf(parse.Ref("entry"), 1, maxPolicies)},

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
	{name: "match", in: inOverride, doc: "The requests that it applies to. All clauses must match. In a list, one of the alternatives must match.", form: parse.Ref("match")},
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
	{name: "runs", in: inTest | inStep, doc: "How long each request runs until its response, at most 1h; not at all if absent. It holds its slots in that time.", form: parse.Ref("duration")},
	{name: "status", in: inTest | inStep, doc: "The HTTP status of the responses, for charge_on. Without status and grpc, admitted requests keep their charge.", form: parse.Whole(http.StatusSwitchingProtocols, endStatus-1)},
	{name: "grpc", in: inTest | inStep, doc: "The gRPC status code of the responses.", form: parse.Word(GRPCCodes()...)},
	{name: "bytes", in: inTest | inStep, doc: "The size of the response bodies; unknown if absent.", form: parse.Schema{"type": "integer", "minimum": 0}},
	{name: "response_headers", in: inTest | inStep, doc: "Header fields of the responses.", form: parse.Schema{"type": "object", "additionalProperties": parse.Schema{"type": []string{"string", "number"}}}},
	{name: "usage", in: inTest | inStep, form: parse.Ref("usage"),
		doc: "The tokens that a language model used for each request, by class. Without status and grpc, the responses have the status 200."},
	{name: "input", in: inUsage, doc: "Tokens of the prompt, apart from the next two; 0 if absent.", form: parse.Whole(0, maxAITokens)},
	{name: "cached", in: inUsage, doc: "Tokens of the prompt from the provider's cache; 0 if absent.", form: parse.Whole(0, maxAITokens)},
	{name: "cache_write", in: inUsage, doc: "Tokens of the prompt that the provider wrote to its cache; 0 if absent.", form: parse.Whole(0, maxAITokens)},
	{name: "output", in: inUsage, doc: "Tokens of the completion, apart from reasoning; 0 if absent.", form: parse.Whole(0, maxAITokens)},
	{name: "reasoning", in: inUsage, doc: "Tokens of the completion that the client does not see; 0 if absent.", form: parse.Whole(0, maxAITokens)},
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
