// SPDX-License-Identifier: Apache-2.0

package mete

import "github.com/metehq/mete/store"

// The contract with stores, which package store describes.
type (
	Store      = store.Store
	Refund     = store.Refund
	Mode       = store.Mode
	StoreError = store.Error
)

// A failed call of a store may have spent tokens, or has not: see [Spent].
const (
	NotSpent   = store.NotSpent
	MaybeSpent = store.MaybeSpent
)

// Spent reports whether the call that returned err may have spent tokens. An error that
// does not say is taken as [MaybeSpent]; nil is, too.
func Spent(err error) store.Spending { return store.Spent(err) }
