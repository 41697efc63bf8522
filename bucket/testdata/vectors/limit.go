// SPDX-License-Identifier: Apache-2.0

package vectors

import (
	"fmt"

	"github.com/metehq/mete/bucket"
)

// spec parses the limit. Where that fails the spec is zero, which does not
// compile either.
func (r rawLimit) spec() (bucket.Spec, error) {
	capacity, err := bucket.ParseTokens(r.Capacity)
	if err != nil {
		return bucket.Spec{}, err
	}
	rate, err := bucket.ParseRate(r.Rate)
	if err != nil {
		return bucket.Spec{}, err
	}
	spec := bucket.Spec{Capacity: capacity, Rate: rate}
	if r.MaxReserved != nil {
		most, err := bucket.ParseTokens(*r.MaxReserved)
		if err != nil {
			return bucket.Spec{}, err
		}
		spec.MaxReserved = &most
	}
	return spec, nil
}

// compile compiles the spec and compares the refill with the one written down.
func (r rawLimit) compile(spec bucket.Spec) (bucket.Limit, error) {
	limit, _, err := spec.Compile()
	if err != nil {
		return bucket.Limit{}, err
	}
	if n, p := limit.Refill(); int64(n) != r.N || p != r.P {
		return bucket.Limit{}, fmt.Errorf("capacity %s, rate %s: refill is %d thousandths every %d µs, want %d every %d",
			r.Capacity, r.Rate, int64(n), p, r.N, r.P)
	}
	return limit, nil
}
