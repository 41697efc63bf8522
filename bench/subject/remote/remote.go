// SPDX-License-Identifier: Apache-2.0

// Package remote gives limiters with buckets on a server one interface.
package remote

// A Take takes one token of every key's bucket and reports whether all buckets had one. Keys are distinct and
// sorted. A Take keeps memory between calls: it is not safe for concurrent use.
type Take func(keys []string) (allowed bool, err error)

// A Limiter is safe for concurrent use.
type Limiter struct {
	// Caller returns the Take of one more goroutine.
	Caller func() Take

	// Close ends background work and closes the connections.
	Close func()
}

// FromSingle makes takes with a limiter that accepts one key per call. For several keys it calls the limiter in turn
// until one denies. That is not atomic: tokens of earlier keys are lost.
func FromSingle(take func(key string) (bool, error)) func() Take {
	return func() Take {
		return func(keys []string) (bool, error) {
			for _, key := range keys {
				if allowed, err := take(key); err != nil || !allowed {
					return false, err
				}
			}
			return true, nil
		}
	}
}
