// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"bytes"
	"encoding/json"
	"time"
)

// DefaultPolicy is the policy of a row for which no statement names another.
const DefaultPolicy = "rules"

// A Rule is a row of rate_limit_rule. Spec is the rule. The database writes a column
// that an [Source.Edit] changes into Spec, and sets all columns by Spec. Numbers are
// decimals as text, so that none is rounded.
type Rule struct {
	ID            int64  // 0: the row is new
	Name          string // the fields up to Description say what Spec says; empty is NULL
	KeyPattern    string
	Scope         string
	RatePerSecond string
	BurstCapacity string
	Plan          string
	Description   string
	Active        bool
	Priority      int32
	Policy        string          // empty: [DefaultPolicy]
	Fallback      bool            // the rule is the fallback_limit of its policy
	Spec          json.RawMessage // the rule as in a policy file; nil is {}

	// The database keeps the fields below.
	WindowTokens string // the tokens or the budget of a window, empty for none
	WindowLength string // the window or the period of it
	Version      int64
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// sameRow reports whether r and o have the same values.
func (r *Rule) sameRow(o *Rule) bool {
	return r.Name == o.Name && r.KeyPattern == o.KeyPattern && r.Scope == o.Scope && r.Plan == o.Plan &&
		r.RatePerSecond == o.RatePerSecond && r.BurstCapacity == o.BurstCapacity && r.Description == o.Description &&
		r.Active == o.Active && r.Priority == o.Priority && r.Policy == o.Policy && r.Fallback == o.Fallback && bytes.Equal(r.Spec, o.Spec)
}

// A Set holds the rows at one revision. It is not safe for concurrent use.
type Set struct {
	// Revision grows with each change of the tables. It is the version of the policy
	// that [Set.Compile] returns.
	Revision int64

	// Rules are the rows by priority and ID.
	Rules []Rule

	// Policies are the documents of rate_limit_policy by the name of the policy. The
	// empty name has the fields that a file has beside its policies.
	Policies map[string]json.RawMessage

	schema string // the schema of the tables; empty for a Set that no database holds
}
