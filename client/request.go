// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/metehq/mete"
)

// A Request asks whether something may happen now.
type Request struct {
	// Attributes are the facts the server's policy matches and keys by:
	// {"header:x-api-key": "k1"}. Nil has none.
	Attributes map[string]string

	// Cost, where it is not 0, takes the place of the cost that the policy says.
	// 3 is three tokens.
	Cost mete.Tokens

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
	wire := struct {
		Attributes map[string]string `json:"attributes"`
		Cost       json.Number       `json:"cost,omitempty"`
		MaxWait    string            `json:"max_wait,omitempty"`
		ID         string            `json:"id,omitempty"`
	}{Attributes: r.Attributes, ID: r.ID}
	if wire.Attributes == nil {
		wire.Attributes = map[string]string{}
	}
	if r.Cost > 0 {
		wire.Cost = json.Number(r.Cost.String())
	}
	if r.MaxWait > 0 {
		wire.MaxWait = r.MaxWait.String()
	}
	return json.Marshal(wire)
}
