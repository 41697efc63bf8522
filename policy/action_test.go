// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"github.com/metehq/mete/policy"
)

// Pages and logs have no words of their own for actions.
func TestActions_HaveWords(t *testing.T) {
	for _, k := range policy.Actions() {
		if k.Label == "" || k.Verb == "" || k.Count == "" || k.Made == "" || k.Color == "" {
			t.Errorf("action %s: a word is missing: %+v", k.Action, k)
		}
		if k.Some != (k.Effect != "") || k.All != (k.EffectAll != "") || k.Suspends != (k.Notice != "") {
			t.Errorf("action %s: an effect or the notice is missing, or is not needed: %+v", k.Action, k)
		}
		if got := k.Action.Kind(); got != k {
			t.Errorf("Kind() of action %s is %+v, want %+v", k.Action, got, k)
		}
	}
	if got := policy.Action("else").Kind(); got != (policy.ActionKind{Action: "else"}) {
		t.Errorf("Kind() of an unknown action is %+v", got)
	}
}
