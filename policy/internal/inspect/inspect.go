// SPDX-License-Identifier: Apache-2.0

// Package inspect defines the internal view of a compiled policy for packages lint and diff.
package inspect

import (
	"time"

	"github.com/metehq/mete/policy/internal/space"
)

// A Policy is a compiled policy. Slots are indexes into the attributes of policy.Matcher.Attributes.
type Policy struct {
	Space     *space.Space
	Rules     []Rule     // in the order of policy.Matcher.Rules
	Overrides []Override // of the file
}

// A Rule has the unexported parts of a rule.
type Rule struct {
	Path     string // JSON Pointer (RFC 6901)
	Group    int    // of its tiers
	Scope    int    // of its policy
	Selected int    // number of clauses from the policy's selector
	Fallback bool
	Missing  Missing
	Clauses  []Clause
	Takes    space.Box // the requests that its clauses and its key accept
	Limits   []Limit
}

// Missing is the treatment of a request that lacks an attribute of limit_keys.
type Missing uint8

const (
	MissingSkip  Missing = iota // the rule does not apply
	MissingDeny                 // the request is denied
	MissingEmpty                // the attribute counts as empty
)

// A Clause is the condition on one attribute of a match.
type Clause struct {
	Slot     int
	Negate   bool
	Exact    []string
	Prefixes []string // "" is any value
	Set      space.Set
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
	Match     []Clause
}
