// SPDX-License-Identifier: Apache-2.0

package api

import "time"

// A HoldRequest is the body of POST /v1/hold.
type HoldRequest struct {
	// Attributes, Cost, MaxWait and ID are as in [Request].
	Attributes map[string]string `json:"attributes"`
	Cost       Amount            `json:"cost,omitempty"`
	MaxWait    string            `json:"max_wait,omitempty"`
	ID         string            `json:"id,omitempty"`

	// TTL is the time until the hold expires, such as "5m". The default is a minute.
	TTL string `json:"ttl,omitempty"`

	// OnExpiry is "keep" or "refund": the charge of an expired hold. The default is keep.
	OnExpiry string `json:"on_expiry,omitempty"`
}

// A Hold is the response of POST /v1/hold. Its end does not release the [Decision]'s Slot.
type Hold struct {
	Decision

	// Hold is the ID for /v1/settle, /v1/release and /v1/renew. JSON omits it for a denial.
	Hold string `json:"hold,omitempty"`

	// Expires is the end of the hold by the store's clock. JSON omits nil: no bucket has a hold.
	Expires *time.Time `json:"expires,omitempty"`
}

// A HoldSettlement is the body of POST /v1/settle. It has either a Cost or a Usage.
type HoldSettlement struct {
	Hold string `json:"hold"`

	// Cost is the actual cost.
	Cost *Amount `json:"cost,omitempty"`

	// Usage is the tokens that a language model used. Each limit computes its own cost from them.
	Usage *TokenUsage `json:"usage,omitempty"`

	// Model is the model that answered, if it is not the ai:model of the hold. It needs a Usage.
	Model string `json:"model,omitempty"`
}

// A TokenUsage is the number of tokens of one request to a language model, in classes without overlap. Each is at most a
// billion.
type TokenUsage struct {
	Input      int64 `json:"input,omitempty"`       // of the prompt, apart from the next two
	Cached     int64 `json:"cached,omitempty"`      // of the prompt, read from the provider's cache
	CacheWrite int64 `json:"cache_write,omitempty"` // of the prompt, written to the cache
	Output     int64 `json:"output,omitempty"`      // of the completion, apart from Reasoning
	Reasoning  int64 `json:"reasoning,omitempty"`   // of the completion that the client does not see
}

// A HoldRelease is the body of POST /v1/release.
type HoldRelease struct {
	Hold string `json:"hold"`
}

// A HoldRenewal is the body of POST /v1/renew.
type HoldRenewal struct {
	Hold string `json:"hold"`
	For  string `json:"for"` // until the new expiry, such as "5m"
}

// A HoldStatus is the response of POST /v1/settle, /v1/release and /v1/renew.
type HoldStatus struct {
	State string `json:"state"` // "open" or "settled"

	// Settled reports that this call has settled the hold. Otherwise an earlier call has, or no bucket had a hold.
	Settled bool `json:"settled"`

	// Cost is the cost of the first settlement. JSON omits it for an open hold, and after a settlement by usage.
	Cost *Amount `json:"cost,omitempty"`

	// Expires is the end of the hold by the store's clock. JSON omits nil: no bucket had a hold.
	Expires *time.Time `json:"expires,omitempty"`
}
