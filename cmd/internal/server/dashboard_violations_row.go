// SPDX-License-Identifier: Apache-2.0

package server

import (
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/dashboard"
	"github.com/metehq/mete/pgstore/violations"
)

// boardQuery is a filter as the reader takes it.
func boardQuery(f *dashboard.ViolationFilter) violations.Query {
	q := violations.Query{
		Since: f.From, Until: f.To, Rule: f.Rule, Reason: f.Reason, Key: f.Key, User: f.User, Network: f.Network, Endpoint: f.Endpoint,
		After: violations.Place(f.After), Limit: f.Limit,
	}
	switch f.Mode {
	case "enforced":
		q.Mode = violations.Enforced
	case "shadow":
		q.Mode = violations.InShadow
	}
	return q
}

// boardViolation is a row as the dashboard shows it.
func boardViolation(v *violations.Violation) dashboard.Violation {
	row := dashboard.Violation{
		ID: v.ID, At: v.At.UTC(), LastAt: v.Last.UTC(), Denials: v.Denials, Rule: v.Rule, Limit: v.Limit, Reason: v.Reason, Shadow: v.Shadow,
		Key: known(v.Key), User: known(v.User), Address: known(v.Address()), Endpoint: known(v.Endpoint), Cost: v.Cost, Node: v.Node,
	}
	if v.Tokens >= 0 {
		row.Tokens = &v.Tokens
	}
	if v.RetryAfter != bucket.Never {
		seconds := v.RetryAfter.Seconds()
		row.RetryAfter = &seconds
	}
	return row
}

// known is a text that is not empty.
func known(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
