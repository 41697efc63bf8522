// SPDX-License-Identifier: Apache-2.0

package lane

import (
	"fmt"
	"time"
)

// Bounds holds the settings of lanes that stores have in common.
type Bounds struct {
	MaxBatch, MaxQueue, MaxInFlight int
	Timeout                         time.Duration
}

// WithDefaults returns b with each 0 replaced by its default. A negative value is an error.
func (b Bounds) WithDefaults(defaults Bounds) (Bounds, error) {
	for _, f := range []struct {
		name      string
		value     *int
		byDefault int
	}{
		{"MaxBatch", &b.MaxBatch, defaults.MaxBatch},
		{"MaxQueue", &b.MaxQueue, defaults.MaxQueue},
		{"MaxInFlight", &b.MaxInFlight, defaults.MaxInFlight},
	} {
		if *f.value < 0 {
			return b, fmt.Errorf("%s: %d: must not be negative", f.name, *f.value)
		}
		if *f.value == 0 {
			*f.value = f.byDefault
		}
	}
	if b.Timeout < 0 {
		return b, fmt.Errorf("timeout %v: must not be negative", b.Timeout)
	}
	if b.Timeout == 0 {
		b.Timeout = defaults.Timeout
	}
	return b, nil
}
