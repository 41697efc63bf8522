// SPDX-License-Identifier: Apache-2.0

package mete_test

import (
	"errors"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
)

// An amount within a millionth of a token of a thousandth is rounded to it.
func TestTokens_NearThousandths(t *testing.T) {
	l := newPeeker(t)
	for cost, want := range map[mete.Tokens]bucket.Tokens{1.0000009: 1000, 0.9999991: 1000, 0.0010009: 1, 5.0000001: 5000} {
		if d, err := l.Peek(t.Context(), mete.Request{Cost: cost}); err != nil || d.Limits()[0].Cost != want {
			t.Errorf("%v: %+v, error %v; want a cost of %v", float64(cost), d.Limits(), err, want)
		}
	}
	for _, cost := range []mete.Tokens{1.0000011, 0.9999989, 0.0010011, 0.0011, 2.0001, 2.00025} {
		if _, err := l.Peek(t.Context(), mete.Request{Cost: cost}); !errors.Is(err, mete.ErrCost) {
			t.Errorf("%v: error %v, want ErrCost", float64(cost), err)
		}
	}
}
