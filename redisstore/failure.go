// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/metehq/mete"
	"github.com/redis/rueidis"
)

// newStoreError determines whether a failed call may have spent tokens. A call that Redis rejects has spent
// nothing: Redis rejects a call before the script's first write. Any other error within the script may come after
// a write. A closing client fails calls in flight with the same error as later calls.
func newStoreError(err error) *mete.StoreError {
	e := &mete.StoreError{Store: "redisstore", Spent: mete.MaybeSpent, Err: err}
	if err == io.EOF {
		e.Err = fmt.Errorf("the connection was closed: %w", err)
	}
	var dial *net.OpError
	refusal, refused := rueidis.IsRedisErr(err)
	if refused && strings.Contains(refusal.Error(), "user_script") {
		word, _, _ := strings.Cut(refusal.Error(), " ")
		refused = slices.Contains(noWriteErrors, word)
	}
	switch {
	case refused, errors.As(err, &dial) && dial.Op == "dial":
		e.Spent = mete.NotSpent
	}
	return e
}

// noWriteErrors are the script errors that occur before its first write. They include WRONGTYPE, because the
// script reads all keys first.
var noWriteErrors = []string{"OOM", "READONLY", "MISCONF", "NOREPLICAS", "MASTERDOWN", "CLUSTERDOWN", "WRONGTYPE"}

func withOp(err error, op string) error {
	var e *mete.StoreError
	if !errors.As(err, &e) {
		return &mete.StoreError{Op: op, Store: "redisstore", Spent: mete.MaybeSpent, Err: err}
	}
	e = &mete.StoreError{Op: op, Store: "redisstore", Spent: e.Spent, Err: e.Err}
	return e
}

// isTryAgain reports whether Redis rejected a call because some of its keys have moved to another node and others
// have not.
func isTryAgain(err error) bool {
	refusal, ok := rueidis.IsRedisErr(errors.Unwrap(err))
	return ok && refusal.IsTryAgain()
}

// isWrongType reports whether Redis rejected a call because one of its keys is not a string.
func isWrongType(err error) bool {
	refusal, ok := rueidis.IsRedisErr(errors.Unwrap(err))
	return ok && strings.Contains(refusal.Error(), "WRONGTYPE ")
}
