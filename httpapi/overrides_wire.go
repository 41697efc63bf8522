// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"github.com/metehq/mete/overrides"
	"github.com/metehq/mete/policy"
)

// Overrides is the answer to GET /v1/overrides, as JSON carries it.
type Overrides struct {
	// Persistent says whether the overrides outlive the process.
	Persistent bool `json:"persistent"`

	// Overrides are those of the policy file, and then those made at run time.
	Overrides []Override `json:"overrides"`

	// Audit is what was done lately, the latest last.
	Audit []overrides.Entry `json:"audit"`
}

// An Override is one override, and whether it holds. It is the answer to PUT
// /v1/overrides.
type Override struct {
	policy.Override
	State  overrides.State  `json:"state"`
	Source overrides.Source `json:"source"`

	// Mistakes say why it does not fit the policy in force.
	Mistakes []Mistake `json:"mistakes,omitempty"`
}

// A Mistake is one of those in an override.
type Mistake struct {
	Pointer string `json:"pointer"` // in the override: "/match"; empty for all of it
	Detail  string `json:"detail"`
	Hint    string `json:"hint,omitempty"`
}
