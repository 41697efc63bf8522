// SPDX-License-Identifier: Apache-2.0

package policysign

import (
	"fmt"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml"
)

// ParsePrices compiles the prices that a policy names, the contents of the file at path. Prices decide what a policy charges. If
// there are keys, they need a signature like the policy, and a date, by which old prices are recognized.
func (k Keys) ParsePrices(path string, data []byte) (*policy.Prices, error) {
	if len(k) == 0 {
		return policyyaml.ParsePrices(path, data)
	}
	if err := k.Check(path, data); err != nil {
		return nil, err
	}
	p, err := policyyaml.ParsePrices(path, data)
	if err == nil && p.Date() == "" {
		return nil, fmt.Errorf("%s: signed prices need a date: write the day on which they were written", path)
	}
	return p, err
}

// PricesBeside is [policyyaml.PricesBeside] with the keys of the policy.
func (k Keys) PricesBeside(path string) func(file string) (*policy.Prices, error) {
	return func(file string) (*policy.Prices, error) {
		file = policyyaml.PricePath(path, file)
		data, err := policyyaml.Read(file)
		if err != nil {
			return nil, err
		}
		return k.ParsePrices(file, data)
	}
}
