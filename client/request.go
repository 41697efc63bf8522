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
	// Attributes are the facts the server's policy matches and keys by:
	// {"header:x-api-key": "k1"}. Nil has none.
	Attributes map[string]string

	// Cost, where it is not 0, takes the place of the cost that the policy says.
	// 3 is three tokens.
	Cost float64

	// MaxWait, where it is not 0, reserves: tokens that are refilled within it
	// are spent now, and the decision's Wait says when the work may start.
	MaxWait time.Duration

	// ID, where it is not empty, is the same for every attempt at one request:
	// a take that failed may then be repeated, and is charged once. It is
	// printable ASCII of at most 128 bytes. The server remembers it for
	// two minutes.
	ID string
}

// MarshalJSON implements [encoding/json.Marshaler]: the form of the HTTP API.
// Negative amounts and waits are errors.
func (r Request) MarshalJSON() ([]byte, error) {
	if r.Cost < 0 || r.MaxWait < 0 {
		return nil, fmt.Errorf("client: cost %v and longest wait %v: must not be negative", r.Cost, r.MaxWait)
	}
	cost, err := amountOf(r.Cost)
	if err != nil {
		return nil, err
	}
	wire := api.Request{Attributes: r.Attributes, Cost: cost, ID: r.ID}
	if wire.Attributes == nil {
		wire.Attributes = map[string]string{}
	}
	if r.MaxWait > 0 {
		wire.MaxWait = r.MaxWait.String()
	}
	return json.Marshal(wire)
}

// noise is how far an amount may be from a thousandth, in thousandths: sums of decimal
// fractions are not exact in binary.
const noise = 1e-3

// amountOf returns the amount of a number of tokens, which has thousandths and nothing
// finer.
func amountOf(tokens float64) (api.Amount, error) {
	thousandths := tokens * float64(bucket.Token)
	nearest := math.Round(thousandths)
	if !(nearest >= 0 && math.Abs(thousandths-nearest) <= max(noise, nearest*0x1p-51)) || nearest == 0 && tokens != 0 || nearest > float64(bucket.MaxTokens) {
		return 0, fmt.Errorf("client: %v tokens: must be a number from 0 to %v with at most 3 decimals", tokens, bucket.MaxTokens)
	}
	return api.Amount(min(nearest, float64(bucket.MaxTokens))), nil
}
