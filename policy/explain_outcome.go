// SPDX-License-Identifier: Apache-2.0

package policy

var outcomes = [...]string{
	OutcomeApplies: "applies", OutcomeUnmatched: "unmatched", OutcomeLacking: "lacking", OutcomeDenying: "denying", OutcomeExempt: "exempt",
	OutcomeBlocked: "blocked", OutcomeTaken: "taken", OutcomeUnneeded: "unneeded", OutcomeDisabled: "off",
	OutcomeInactive: "inactive",
}

// String returns the name of o: applies, unmatched, lacking, denying, exempt, blocked, taken, unneeded, off or inactive.
func (o Outcome) String() string {
	if int(o) < len(outcomes) {
		return outcomes[o]
	}
	return "unknown"
}
