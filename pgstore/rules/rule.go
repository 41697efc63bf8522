// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"encoding/json"
	"math/big"
	"time"
)

// The scopes: what a rule is about, for people. The pattern has to have the word
// among its labels, unless it is custom.
const (
	ScopeUser     = "user"
	ScopeEndpoint = "endpoint"
	ScopeIP       = "ip"
	ScopeGlobal   = "global"
	ScopeCustom   = "custom"
)

// The patterns that are words: one bucket for all, and that limit_keys in the spec
// say it.
const (
	patternGlobal = "global"
	patternCustom = "custom"
)

// A Rule is a row of rate_limit_rule: see the package documentation for what its
// columns mean. Numbers are decimals as text, so that none is rounded.
type Rule struct {
	ID            int64           // 0: not there yet
	Name          string          // empty: to be given when it is inserted
	KeyPattern    string          //
	Scope         string          // empty: to be found by the pattern when it is inserted
	RatePerSecond string          // empty: NULL
	BurstCapacity string          // empty: NULL
	Plan          string          // empty: NULL
	Active        bool            //
	Description   string          // empty: NULL
	Priority      int32           //
	Spec          json.RawMessage // an object; nil is {}
	Version       int64           // kept by the database, and so are the others below
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// sameRow reports whether a and b have the same columns, but for those that the
// database keeps.
func (r *Rule) sameRow(b *Rule) bool {
	return r.Name == b.Name && r.KeyPattern == b.KeyPattern && r.Scope == b.Scope && r.Plan == b.Plan && r.Active == b.Active &&
		r.Description == b.Description && r.Priority == b.Priority && sameNumber(r.RatePerSecond, b.RatePerSecond) &&
		sameNumber(r.BurstCapacity, b.BurstCapacity) && sameJSON(r.Spec, b.Spec)
}

// sameNumber compares decimals by their value.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	x, okX := new(big.Rat).SetString(a)
	y, okY := new(big.Rat).SetString(b)
	return okX && okY && x.Cmp(y) == 0
}

// setsApart are the fields of a spec that let several active rules have one
// key_pattern and plan. A unique index knows them, too.
var setsApart = []string{"match", "group", "mode", "on_missing", "limit_keys"}
