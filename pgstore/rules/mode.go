// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"

	"github.com/metehq/mete/policy"
)

// modeWord returns a mode as [policy.Mode] spells it, "" for enforce, which is what no
// mode means. What is no mode stays as it is.
func modeWord(word string) string {
	if word == policy.ModeEnforce.String() {
		return ""
	}
	text, share := strings.CutSuffix(word, "%")
	if !share {
		return word
	}
	switch plain, ok := plainDecimal(text); {
	case !ok:
		return word
	case plain == "0":
		return policy.ModeShadow.String()
	case plain == "100":
		return ""
	default:
		return plain + "%"
	}
}

// modeOf returns the mode of a rule by itself. A share of one key, which a policy may
// ask of a rule without limit_keys, is all of it or nothing.
func modeOf(r *policy.Rule) policy.Mode {
	if !r.Mode.Partial() || len(r.LimitKeys) > 0 {
		return r.Mode
	}
	m, err := policy.Load(marshal(map[string]any{"mode": r.Mode.String(), "rules": []any{map[string]any{
		"name": r.Name, "limit_keys": []string{}, "algorithm_config": map[string]any{"rps": 1, "burst": 1}}}}), policy.Options{})
	if err != nil {
		return r.Mode // cannot be
	}
	if matches, _ := m.Match(nil, nil, 0, 0); len(matches) == 1 && !matches[0].Shadow {
		return policy.ModeEnforce
	}
	return policy.ModeShadow
}
