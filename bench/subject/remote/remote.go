// SPDX-License-Identifier: Apache-2.0

// Package remote puts limiters that keep their buckets on a server behind one
// function.
package remote

// A Take asks the bucket of every key for one token and reports whether all of
// them gave it. Keys are distinct and in ascending order. It keeps what it needs
// from call to call: only one goroutine at a time may use it.
type Take func(keys []string) (allowed bool, err error)

// A Limiter is one of the limiters compared. It is safe for concurrent use.
type Limiter struct {
	// Caller returns what one more goroutine takes by.
	Caller func() Take

	// Close ends background work and closes the limiter's connections.
	Close func()
}

// One makes takes of a limiter that knows one key a call: of several keys it
// asks one after another, until one denies. That is not one step: what the keys
// before gave is lost.
func One(take func(key string) (bool, error)) func() Take {
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
