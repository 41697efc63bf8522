// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"
	"net"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/store"
)

// A Kind is the kind of an [Error].
type Kind uint8

const (
	// KindUnreachable: there was no response, or only a part of it.
	KindUnreachable Kind = iota

	// KindRefused: the request is invalid, and a retry would fail again.
	KindRefused

	// KindUnavailable: the server could not decide.
	KindUnavailable

	// KindInvalidResponse: the response is not from a mete server, or from another version.
	KindInvalidResponse
)

func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

var kinds = [...]string{KindUnreachable: "unreachable", KindRefused: "refused", KindUnavailable: "unavailable", KindInvalidResponse: "garbled"}

// An Error means that a request has no decision.
type Error struct {
	Op     string // "take", "peek", "refund", "reset"
	Kind   Kind
	Status int // HTTP status, or 0 without a response

	// Problem is the server's problem body, or nil.
	Problem *api.Problem

	// Err is the local cause, or nil.
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

// Unwrap returns the local cause.
func (e *Error) Unwrap() error { return e.Err }

// Spent reports whether the request may have changed a bucket.
func (e *Error) Spent() store.Spending {
	var op *net.OpError
	if e.Kind == KindRefused || e.Kind == KindUnreachable && errors.As(e.Err, &op) && op.Op == "dial" {
		return store.NotSpent
	}
	return store.MaybeSpent
}
