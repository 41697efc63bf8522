// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"fmt"
	"time"
)

const (
	DefaultFailures   = 10
	DefaultMinFailing = 100 * time.Millisecond
	DefaultOpenFor    = 500 * time.Millisecond
	DefaultProbes     = 3
)

// Fixed parameters of the breaker.
const (
	// Window is the period in which the breaker measures the failure rate. A rate of one half opens it only after
	// MinCalls calls. Calls before the first failure do not count.
	Window   = 10 * time.Second
	MinCalls = 20

	// MinDeadline is the shortest caller's deadline that counts as evidence about the store.
	MinDeadline = 50 * time.Millisecond
)

// Config holds the settings of a [Store]. The zero value selects the defaults.
type Config struct {
	// NoBreaker disables the circuit breaker.
	NoBreaker bool

	// Failures is the number of consecutive failed calls that open the breaker. 0 means DefaultFailures.
	Failures int

	// MinFailing is the shortest duration of failures that opens the breaker. 0 means DefaultMinFailing; if negative, any
	// failure counts immediately. A store that batches takes fails many together when a single call stalls, which is
	// not yet an outage.
	MinFailing time.Duration

	// OpenFor is the time until an open breaker admits probes. 0 means DefaultOpenFor.
	OpenFor time.Duration

	// Probes is the number of probes that must all succeed to close the breaker. 0 means DefaultProbes.
	Probes int

	// OnChange, if not nil, is called for each state change, sequentially, and before the call that caused it
	// continues. It must return quickly. It can call [Store.State] and [Store.Stats], which show the new state,
	// but no other methods of the store.
	OnChange func(from, to State)
}

// withDefaults validates c and fills in its defaults. The error joins all errors.
func (c Config) withDefaults() (Config, error) {
	var wrong []error
	for _, n := range []struct {
		name  string
		value *int
		most  int
		usual int
	}{
		{"Failures", &c.Failures, 1 << 20, DefaultFailures},
		{"Probes", &c.Probes, 1 << 20, DefaultProbes},
	} {
		if *n.value < 0 || *n.value > n.most {
			wrong = append(wrong, fmt.Errorf("guard: %s is %d: must be between 0 and %d", n.name, *n.value, n.most))
		}
		if *n.value == 0 {
			*n.value = n.usual
		}
	}
	if c.OpenFor < 0 {
		wrong = append(wrong, fmt.Errorf("guard: OpenFor is %v: must not be negative", c.OpenFor))
	}
	if c.OpenFor == 0 {
		c.OpenFor = DefaultOpenFor
	}
	if c.MinFailing == 0 {
		c.MinFailing = DefaultMinFailing
	}
	return c, errors.Join(wrong...)
}
