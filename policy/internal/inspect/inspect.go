// SPDX-License-Identifier: Apache-2.0

// Package inspect defines the internal view of a compiled policy for packages lint and diff.
package inspect

import (
	"time"

	"github.com/metehq/mete/internal/requestpath"
	"github.com/metehq/mete/policy/internal/space"
)

// A Policy is a compiled policy. Slots are indexes into the attributes of policy.Matcher.SlotAttributes.
type Policy struct {
	Space     *space.Space
	Rules     []Rule     // in the order of policy.Matcher.Rules
	Overrides []Override // of the file

	Has map[int]Has // by the slot of an attribute that has makes
}

// A Has is a clause with has: one of the values of an attribute is in a pattern.
type Has struct {
	Of    int    // the slot of the attribute
	Value string // one that the pattern includes
}

// A Rule has the unexported parts of a rule.
type Rule struct {
	Path     string // JSON Pointer (RFC 6901)
	Group    int    // of its tiers
	Scope    int    // of its policy
	Selected int    // number of clauses from the policy's selector
	Fallback bool
	Timed    bool // it applies only at times
	Missing  Missing
	Limits   []Limit

	Alternatives []Alternative // at least one
}

// An Alternative is one list of clauses of a match. All of them must hold.
type Alternative struct {
	Clauses []Clause
	Takes   space.Box // the requests that the clauses and the rule's key accept
}

// Missing is the treatment of a request that lacks an attribute of limit_keys.
type Missing uint8

const (
	MissingSkip  Missing = iota // the rule does not apply
	MissingDeny                 // the request is denied
	MissingEmpty                // the attribute counts as empty
)

// IsList reports whether the clause lists all values that it accepts.
func (c *Clause) IsList() bool {
	return !c.Negate && len(c.Prefixes)+len(c.Suffixes)+len(c.Templates) == 0
}

// A Clause is the condition on one attribute of a match.
type Clause struct {
	Slot     int
	Negate   bool
	Exact    []string
	Prefixes []string // "" is any value

	// Suffixes and Templates are of hosts and paths.
	Suffixes  []string
	Templates []*requestpath.Template

	Set space.Set
}

// A Limit has the paths of a limit in the file.
type Limit struct {
	Path   string // of its entry in limits, or of algorithm_config
	Fields string // of the object with its numbers
	Starts bool   // the file sets when the windows begin

	Defaults bool // the file sets default_cost
}

// An Override is an exception from the rules.
type Override struct {
	Path      string
	Action    string
	ExpiresAt time.Time
	Match     [][]Clause // alternatives; none is all requests
}
