// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
)

// A Request asks whether something may happen now.
type Request struct {
	// Attributes are the values that the server's policy matches: {"header:x-api-key": "k1"}. May be nil.
	Attributes map[string]string

	// Cost, if not 0, overrides the policy's cost. 3 means three tokens.
	Cost float64

	// MaxWait, if not 0, makes a reservation: the request spends tokens that refill within that time. The
	// decision's Wait is the time until the work may start.
	MaxWait time.Duration

	// ID, if not empty, identifies retries of one request. A take with an ID may be retried and is charged once.
	// It is at most 128 bytes of printable ASCII. The server remembers it for two minutes.
	ID string

	// Slot is the [Decision.Slot] of the take, for [Client.RenewSlots] and [Client.ReleaseSlots].
	Slot string
}

// MarshalJSON implements [encoding/json.Marshaler] in the form of the HTTP API. Negative amounts and waits are
// errors.
func (r Request) MarshalJSON() ([]byte, error) {
	if r.Cost < 0 || r.MaxWait < 0 {
		return nil, fmt.Errorf("client: cost %v and max wait %v: must not be negative", r.Cost, r.MaxWait)
	}
	cost, err := amountOf(r.Cost)
	if err != nil {
		return nil, err
	}
	wire := api.Request{Attributes: r.Attributes, Cost: cost, ID: r.ID, Slot: r.Slot}
	if wire.Attributes == nil {
		wire.Attributes = map[string]string{}
	}
	if r.MaxWait > 0 {
		wire.MaxWait = r.MaxWait.String()
	}
	return json.Marshal(wire)
}

// tolerance is the maximum rounding error of an amount, in thousandths of a token.
const tolerance = 1e-3

func amountOf(tokens float64) (api.Amount, error) {
	thousandths := tokens * float64(bucket.Token)
	nearest := math.Round(thousandths)
	if !(nearest >= 0 && math.Abs(thousandths-nearest) <= max(tolerance, nearest*0x1p-51)) || nearest == 0 && tokens != 0 || nearest > float64(bucket.MaxTokens) {
		return 0, fmt.Errorf("client: %v tokens: must be a number from 0 to %v with at most 3 decimals", tokens, bucket.MaxTokens)
	}
	return api.Amount(min(nearest, float64(bucket.MaxTokens))), nil
}
