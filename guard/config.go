// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"fmt"
	"time"
)

// Defaults of a [Config].
const (
	DefaultFailures = 10
	DefaultSpell    = 100 * time.Millisecond
	DefaultOpenFor  = 500 * time.Millisecond
	DefaultProbes   = 3
)

// What the breaker goes by beside its [Config].
const (
	// Window is how far back it looks for the share of calls that have failed, and
	// MinCalls how many there must have been for half of them to open it. Those
	// before the first that failed are not counted.
	Window   = 10 * time.Second
	MinCalls = 20

	// Patience is how long a store must have had before a caller's own deadline
	// says something about it.
	Patience = 50 * time.Millisecond
)

// Config are the settings of a [Store]. The zero Config is sound.
type Config struct {
	// NoBreaker leaves the circuit breaker out.
	NoBreaker bool

	// Failures is after how many failed calls in a row the breaker opens: if 0,
	// DefaultFailures.
	Failures int

	// Spell is how long the store must have been failing for the breaker to open: if
	// 0, DefaultSpell; below 0, it opens at once. A store that combines takes fails
	// many by one call that stalls, which is no illness yet.
	Spell time.Duration

	// OpenFor is how long it is open before it lets calls through to see: if 0,
	// DefaultOpenFor.
	OpenFor time.Duration

	// Probes is how many calls it then lets through, and how many of them in a row
	// must be answered for it to close: if 0, DefaultProbes.
	Probes int

	// OnChange, if not nil, is called when the breaker's state changes, one change
	// after the other and before the call that brought it about goes on. It must
	// be quick. It may ask for [Store.State] and [Store.Stats], which show the new
	// state, and must not call the store.
	OnChange func(from, to State)
}

// complete returns c with its defaults, or all that is wrong with it.
func (c Config) complete() (Config, error) {
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
		wrong = append(wrong, fmt.Errorf("guard: OpenFor is %v: must not be below 0", c.OpenFor))
	}
	if c.OpenFor == 0 {
		c.OpenFor = DefaultOpenFor
	}
	if c.Spell == 0 {
		c.Spell = DefaultSpell
	}
	return c, errors.Join(wrong...)
}
