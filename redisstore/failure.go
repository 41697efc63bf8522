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

// storeError says whether a failed call may have spent something. What Redis
// refuses it has not done: that the node cannot take writes, it says before the
// script's first. Of other errors within the script nobody knows what came before.
// A client that is being closed gives up calls on the wire with the same error as
// those that come later.
func storeError(err error) *mete.StoreError {
	e := &mete.StoreError{Store: "redisstore", Spent: mete.MaybeSpent, Err: err}
	if err == io.EOF {
		e.Err = fmt.Errorf("the connection was closed: %w", err)
	}
	var dial *net.OpError
	refusal, refused := rueidis.IsRedisErr(err)
	if refused && strings.Contains(refusal.Error(), "user_script") {
		word, _, _ := strings.Cut(refusal.Error(), " ")
		refused = slices.Contains(beforeTheFirstWrite, word)
	}
	switch {
	case refused, errors.As(err, &dial) && dial.Op == "dial":
		e.Spent = mete.NotSpent
	}
	return e
}

// beforeTheFirstWrite are the errors of a script that has written nothing yet. A
// key of another type is met while the script still reads.
var beforeTheFirstWrite = []string{"OOM", "READONLY", "MISCONF", "NOREPLICAS", "MASTERDOWN", "CLUSTERDOWN", "WRONGTYPE"}

// named is err with the operation that failed.
func named(err error, op string) error {
	var e *mete.StoreError
	if !errors.As(err, &e) {
		return &mete.StoreError{Op: op, Store: "redisstore", Spent: mete.MaybeSpent, Err: err}
	}
	e = &mete.StoreError{Op: op, Store: "redisstore", Spent: e.Spent, Err: e.Err}
	return e
}

// isTryAgain reports whether Redis refused a call because some of its keys have
// moved to another node already, and others not.
func isTryAgain(err error) bool {
	refusal, ok := rueidis.IsRedisErr(errors.Unwrap(err))
	return ok && refusal.IsTryAgain()
}

// isWrongType reports whether Redis refused a call because one of its keys holds
// no text.
func isWrongType(err error) bool {
	refusal, ok := rueidis.IsRedisErr(errors.Unwrap(err))
	return ok && strings.Contains(refusal.Error(), "WRONGTYPE ")
}
