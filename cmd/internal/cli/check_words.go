// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strconv"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
)

func modeName(r *policy.Rule) string {
	if r.Shadow {
		return "shadow"
	}
	return "enforce"
}

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
		names[i] = a.String()
		if a.Source == policy.IP && a.Bits != 64 {
			names[i] += "/" + strconv.Itoa(a.Bits)
		}
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

// formatFull says how long an empty bucket takes to be full.
func formatFull(l bucket.Limit) string {
	d := l.TimeFor(l.Capacity())
	switch {
	case d == bucket.Never:
		return "never"
	case d >= 10*time.Second:
		d = d.Round(time.Second)
	case d >= time.Second:
		d = d.Round(time.Millisecond)
	}
	return d.String()
}
