// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/metehq/mete/internal/prose"
)

// A bound is what --max-newly-limited says: so many requests, or such a share of
// all. A nil bound has no end.
type bound struct {
	text  string
	count int64
	share float64 // of 1; negative where count counts
}

// parseBound reads a bound. Nothing is none.
func parseBound(text string) (*bound, error) {
	if text == "" {
		return nil, nil
	}
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		p, err := strconv.ParseFloat(strings.TrimSpace(percent), 64)
		if err != nil || math.IsNaN(p) || p < 0 || p > 100 {
			return nil, fmt.Errorf("%q: a share must be between 0%% and 100%%", text)
		}
		return &bound{text: text, share: p / 100}, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return nil, fmt.Errorf("%q: must be a whole number of requests, or a share such as 0.1%%", text)
	}
	return &bound{text: text, count: n, share: -1}, nil
}

// An exceedsBound says that more requests are newly limited than may be.
type exceedsBound struct{ error }

// check returns an exceedsBound if n of so many requests are too many.
func (b *bound) check(n, requests int64) error {
	if b == nil {
		return nil
	}
	most := float64(b.count)
	if b.share >= 0 {
		most = b.share * float64(requests)
	}
	if float64(n) <= most {
		return nil
	}
	return exceedsBound{errors.New(prose.Count(n, "request is", "requests are") + " newly limited, more than --max-newly-limited " + b.text + " lets pass")}
}
