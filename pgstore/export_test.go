// SPDX-License-Identifier: Apache-2.0

package pgstore

import "github.com/metehq/mete/store"

// IsHeld reports whether the store counts a bucket as held.
func (s *Store) IsHeld(key string) bool { return s.held.holdsAny([]store.Charge{{Key: key}}) }
