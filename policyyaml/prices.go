// SPDX-License-Identifier: Apache-2.0

package policyyaml

import (
	"errors"
	"path/filepath"

	"github.com/metehq/mete/policy"
)

// PricesBeside returns a function for [policy.Options].Prices. It reads the file that a policy names, relative to the directory
// of the policy at path.
func PricesBeside(path string) func(file string) (*policy.Prices, error) {
	return func(file string) (*policy.Prices, error) {
		file = PricePath(path, file)
		data, err := Read(file)
		if err != nil {
			return nil, err
		}
		return ParsePrices(file, data)
	}
}

// PricePath returns the path of the file with prices that the policy at path names.
func PricePath(path, file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(filepath.Dir(path), file)
}

// ParsePrices compiles a file with prices in YAML or JSON. Its arguments and errors are as in [Parse].
func ParsePrices(name string, data []byte) (*policy.Prices, error) {
	return parse(name, data, "write version: and models:", policy.ReadPrices)
}

// A priceReader keeps the errors in the file with the prices, which have places of their own.
type priceReader struct {
	read func(string) (*policy.Prices, error)
	errs Errors
}

func (r *priceReader) prices(file string) (*policy.Prices, error) {
	p, err := r.read(file)
	errors.As(err, &r.errs)
	return p, err
}

// place replaces the error that the policy has for the file.
func (r *priceReader) place(err error) error {
	found, ok := errors.AsType[Errors](err)
	if !ok || len(r.errs) == 0 {
		return err
	}
	var all Errors
	for _, e := range found {
		if e.Path == "/prices/file" {
			for _, e := range r.errs {
				e.inPrices = true
				all = append(all, e)
			}
		} else {
			all = append(all, e)
		}
	}
	return all
}
