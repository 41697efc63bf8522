// SPDX-License-Identifier: Apache-2.0

package mete

import "github.com/metehq/mete/store"

// The types of package store that programs use most.
type (
	Store      = store.Store
	Refund     = store.Refund
	Mode       = store.Mode
	StoreError = store.Error
)

// Possible effects of a failed store call: see [Spent].
const (
	NotSpent   = store.NotSpent
	MaybeSpent = store.MaybeSpent
)

// Spent reports whether the store call that returned err may have spent tokens. It returns [MaybeSpent] for nil
// and for errors without that information.
func Spent(err error) store.Spending { return store.Spent(err) }
