// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

func storeErrorName(r *policy.Rule) string {
	if r.OnStoreError == policy.Closed {
		return "closed"
	}
	return "open"
}

// keyNames says who shares a bucket of the rule.
func keyNames(r *policy.Rule) string {
	if len(r.LimitKeys) == 0 {
		return "(one for all)"
	}
	names := make([]string, len(r.LimitKeys))
	for i, a := range r.LimitKeys {
		names[i] = a.Spelled()
	}
	return strings.Join(names, " ")
}

// formatRate writes a limit's refill as people would: "10/s", "7/m", "0.5/s".
func formatRate(l bucket.Limit) string {
	n, p := l.Refill()
	for _, unit := range []struct {
		name string
		per  time.Duration
	}{{"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour}, {"w", 7 * 24 * time.Hour}} {
		micros := unit.per.Microseconds()
		if p == 0 || micros%p != 0 || micros/p > int64(bucket.MaxTokens)/max(int64(n), 1) {
			continue
		}
		if amount := n * bucket.Tokens(micros/p); amount >= bucket.Token/10 {
			return amount.String() + "/" + unit.name
		}
	}
	return bucket.Rate{Tokens: n, Per: time.Duration(p) * time.Microsecond}.String()
}
