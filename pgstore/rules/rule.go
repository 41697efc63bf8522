// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"bytes"
	"encoding/json"
	"time"
)

// DefaultPolicy is the policy of a row without an explicit policy.
const DefaultPolicy = "rules"

// A Rule is a row of rate_limit_rule. Spec is the complete rule. If an [Source.Edit] changes a column, the
// database updates Spec, and then sets all columns from Spec. Numbers are decimal text to avoid rounding.
type Rule struct {
	ID            int64  // 0 for a new row
	Name          string // the fields up to Description repeat parts of Spec; empty is NULL
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
	WindowLength string // the length of the window or period
	Version      int64
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

func (r *Rule) sameRow(o *Rule) bool {
	return r.Name == o.Name && r.KeyPattern == o.KeyPattern && r.Scope == o.Scope && r.Plan == o.Plan &&
		r.RatePerSecond == o.RatePerSecond && r.BurstCapacity == o.BurstCapacity && r.Description == o.Description &&
		r.Active == o.Active && r.Priority == o.Priority && r.Policy == o.Policy && r.Fallback == o.Fallback && bytes.Equal(r.Spec, o.Spec)
}

// A Set holds the rows at one revision. It is not safe for concurrent use.
type Set struct {
	// Revision increases with each change of the tables. [Set.Compile] returns it as the policy's version.
	Revision int64

	// Rules are the rows, ordered by priority and ID.
	Rules []Rule

	// Policies are the documents of rate_limit_policy by policy name. The empty name has the fields of a file
	// that apply to all policies.
	Policies map[string]json.RawMessage

	schema string // the schema of the tables; empty if the Set is not from a database
}
