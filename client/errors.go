// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"
	"net"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/store"
)

// A Kind says why there is no decision.
type Kind uint8

const (
	// Unreachable: no answer came, or not all of it.
	Unreachable Kind = iota

	// Refused: the request itself is wrong, and would be refused again.
	Refused

	// Unavailable: the server is there, but could not decide.
	Unavailable

	// Garbled: what answered is not a mete server, or not one of this version.
	Garbled
)

// String returns the kind as a word.
func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

var kinds = [...]string{Unreachable: "unreachable", Refused: "refused", Unavailable: "unavailable", Garbled: "garbled"}

// An Error says why a question has no decision.
type Error struct {
	Op     string // "take", "peek", "refund", "reset"
	Kind   Kind
	Status int // of the HTTP answer, 0 if there was none

	// Problem is what the server said, nil if it said nothing.
	Problem *api.Problem

	// Err is the cause on this side, nil if there is none.
	Err error
}

// Error formats e on one line.
func (e *Error) Error() string {
	s := "client: " + e.Op + ": " + e.Kind.String()
	if p := e.Problem; p != nil {
		s += fmt.Sprintf(": %d %s", p.Status, p.Title)
		if p.Pointer != "" {
			s += ": " + p.Pointer
		}
		if p.Detail != "" {
			s += ": " + p.Detail
		}
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause on this side.
func (e *Error) Unwrap() error { return e.Err }

// Spent says whether the question may have changed a bucket although it has no
// answer.
func (e *Error) Spent() store.Spending {
	var op *net.OpError
	if e.Kind == Refused || e.Kind == Unreachable && errors.As(e.Err, &op) && op.Op == "dial" {
		return store.NotSpent
	}
	return store.MaybeSpent
}
