// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"strings"
)

// A Clearer is a [Store] that can reset the buckets of whole families, for admins. It is safe for concurrent use.
type Clearer interface {
	// ClearFamilies resets the buckets of keys in the families: see [Family]. It returns the number of removed
	// buckets, including full ones.
	//
	// Each call visits a bounded part of the store and never blocks takes for longer than a few milliseconds.
	// Start with an empty from, pass the returned next to the following call, and stop when next is empty. A
	// from of another store or version is an error that wraps [ErrFrom].
	//
	// A bucket that exists at the start, and is not charged during the calls, is full at the end. A concurrent charge
	// may survive. A failed call may have removed buckets, and may be repeated. Leases stay: see [FamilyDropper].
	ClearFamilies(ctx context.Context, families []string, from string) (removed int64, next string, err error)
}

// ErrFrom: the from of a ClearFamilies call is invalid.
var ErrFrom = errors.New("must be empty or the next of an earlier call")

// A FamilyDropper is a [Store] that holds tokens of buckets in the process, such as leases.
type FamilyDropper interface {
	// DropFamilies returns the families' tokens to the store in the background.
	DropFamilies(families []string)
}

// Family returns the common prefix of the keys of one limit in a policy. It is the limit's name and a colon, without
// the hash tag in braces. Other keys have the family "", which no limit has.
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
	// Programs may use addresses and other texts with a colon as keys. A family for each of them would waste a
	// store's memory.
	if rest := key[end:]; rest != "" && rest[0] != '|' && strings.IndexByte(rest, '=') < 0 {
		return ""
	}
	return key[:end]
}
