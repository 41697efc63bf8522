// SPDX-License-Identifier: Apache-2.0

package api

import "time"

// AI is the response of GET /v1/ai: the tokens and the money that clients spent at language models through this process.
type AI struct {
	At    time.Time `json:"at"`
	Since time.Time `json:"since"` // the start of the counts

	// Masked reports that the caller's role may not see keys. Keys are then masked as in [Top].
	Masked bool `json:"masked"`

	Policy AIPolicy `json:"policy"`

	Models []AIModel `json:"models"` // in the order of their names
	Rules  []AIRule  `json:"rules"`  // in the order of their names

	// TokenKeys and MoneyKeys are the keys that spent most.
	TokenKeys []AIKey `json:"token_keys"`
	MoneyKeys []AIKey `json:"money_keys"`

	// Breakers are the open circuit breakers. Loops are the keys with loops in the last hour. The latest denials are first.
	Breakers []AIStoppedKey `json:"breakers"`
	Loops    []AIStoppedKey `json:"loops"`
}

// AIPolicy tells what the active policy does with language models.
type AIPolicy struct {
	Tokens         bool `json:"tokens"`          // a limit counts tokens
	Money          bool `json:"money"`           // a limit counts money
	LoopDetection  bool `json:"loop_detection"`  // enabled
	CircuitBreaker bool `json:"circuit_breaker"` // enabled

	// PriceUnit, PriceVersion and PriceDate come from the prices of the policy. JSON omits empty ones.
	PriceUnit    string `json:"price_unit,omitempty"`
	PriceVersion string `json:"price_version,omitempty"`
	PriceDate    string `json:"price_date,omitempty"` // as in 2026-11-01
}

// AIModel has the counts of a model.
type AIModel struct {
	Model string `json:"model"` // "(other)" for models without counts of their own

	// Reported, Estimated and Unknown are numbers of requests: with usage of the provider, with an estimate of their text, and
	// without both.
	Reported  uint64 `json:"reported"`
	Estimated uint64 `json:"estimated"`
	Unknown   uint64 `json:"unknown"`

	// The tokens of these requests, in classes without overlap.
	Input      uint64 `json:"input"`
	Cached     uint64 `json:"cached"`
	CacheWrite uint64 `json:"cache_write"`
	Output     uint64 `json:"output"`
	Reasoning  uint64 `json:"reasoning"`

	Money Amount `json:"money"` // by the first prices of the policy

	// Closed and Failed are the numbers of streams that a limit ended, with an end as usual or with an error.
	Closed uint64 `json:"closed"`
	Failed uint64 `json:"failed"`

	// Prompt and Completion compare estimates with the usage of the provider. JSON omits them if there are none.
	Prompt     *AIEstimate `json:"prompt,omitempty"`
	Completion *AIEstimate `json:"completion,omitempty"`
}

// AIEstimate compares estimates by the learned ratio with the usage of the provider.
type AIEstimate struct {
	Requests int64   `json:"requests"` // that the ratio was learned from
	PerByte  float64 `json:"per_byte"` // tokens

	// Error is the mean of |estimate − actual| / actual over the last requests. Bias is the same with the sign.
	Error float64 `json:"error"`
	Bias  float64 `json:"bias"`
}

// AIRule has the counts of a rule's first limit of tokens.
type AIRule struct {
	Rule     string `json:"rule"`
	Reserved Amount `json:"reserved"` // tokens
	Charged  Amount `json:"charged"`  // tokens
}

// An AIKey is a bucket that spent tokens or money.
type AIKey struct {
	Rule  string    `json:"rule"`
	Limit string    `json:"limit"`
	Key   string    `json:"key"`
	Mask  string    `json:"mask,omitempty"` // the hash in a masked key
	Parts []KeyPart `json:"parts"`

	Requests uint64    `json:"requests"` // since the key is listed
	Spent    Amount    `json:"spent"`    // at most Error too high
	Error    Amount    `json:"error"`
	Last     time.Time `json:"last"`
}

// An AIStoppedKey is a bucket that a circuit breaker or loop detection denied.
type AIStoppedKey struct {
	Rule  string    `json:"rule"`
	Limit string    `json:"limit"`
	Key   string    `json:"key"`
	Mask  string    `json:"mask,omitempty"` // the hash in a masked key
	Parts []KeyPart `json:"parts"`

	Denials uint64    `json:"denials"` // by this process
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`

	// RetryAfter is the time until requests are allowed again. It is [bucket.Never] if only a reset helps, and 0 if they
	// are allowed now.
	RetryAfter Seconds `json:"retry_after"`
}
