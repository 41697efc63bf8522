// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"strings"
)

// A Clearer is a [Store] that can make the buckets of whole families full, for
// administrators. It is safe for concurrent use.
type Clearer interface {
	// ClearFamilies makes buckets full whose keys have one of the families: see [Family].
	// It returns how many it removed. Some may have been full already.
	//
	// One call looks at a bounded part of the store and never blocks takes for longer than
	// a few milliseconds. The caller begins with an empty from, passes the returned next to
	// the following call, and is done when next is empty. The text of another store or version
	// is an error that wraps [ErrFrom].
	//
	// A bucket that exists when the caller begins, and that no request charges meanwhile, is
	// full at the end. The charge of a take that runs meanwhile may survive. A failed call
	// may have removed buckets, and may be repeated. Leases stay: see [Forgetter].
	ClearFamilies(ctx context.Context, families []string, from string) (removed int64, next string, err error)
}

// ErrFrom: a call of ClearFamilies is not to go on from this place.
var ErrFrom = errors.New("must be empty or the next of an earlier call")

// A Forgetter is a [Store] that keeps tokens of buckets in the process, such as leases.
type Forgetter interface {
	// ForgetFamilies gives tokens of the families back to the store, in the background.
	ForgetFamilies(families []string)
}

// Family returns the part of a policy's key that all buckets of one limit share. It is the name
// of the limit and its colon, without the hash tag in braces. A key that does not look like one
// of a policy has the family "", which no limit has.
//
//	client:ip=192.0.2.1             client:
//	{acme}free/day:tenant=acme|#3   free/day:
//	2001:db8::1
func Family(key string) string {
	if strings.HasPrefix(key, "{") {
		if _, after, ok := strings.Cut(key, "}"); ok {
			key = after
		}
	}
	end := strings.IndexByte(key, ':') + 1
	if end == 0 {
		return ""
	}
	// Programs may give stores addresses and other texts with a colon. A family for each of
	// them would cost a store memory.
	if rest := key[end:]; rest != "" && rest[0] != '|' && strings.IndexByte(rest, '=') < 0 {
		return ""
	}
	return key[:end]
}
