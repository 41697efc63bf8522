// SPDX-License-Identifier: Apache-2.0

package policy

// outcomes are the words for them.
var outcomes = [...]string{
	Applies: "applies", Unmatched: "unmatched", Lacking: "lacking", Denying: "denying", Exempt: "exempt",
	Blocked: "blocked", Taken: "taken", Unneeded: "unneeded", Disabled: "off",
}

// String returns a word for o: applies, unmatched, lacking, denying, exempt,
// blocked, taken, unneeded or off.
func (o Outcome) String() string {
	if int(o) < len(outcomes) {
		return outcomes[o]
	}
	return "unknown"
}
