// SPDX-License-Identifier: Apache-2.0

package rules

// Export returns the active rules as a policy file, in JSON. It says the same as they
// do, and [Set.Import] of it changes none of them. What it says may yet have mistakes,
// and is nothing but the rules that it can say: see [Set.Compile].
func (s *Set) Export() []byte {
	active, _ := s.translations()
	groups := groupsOf(active)
	groups.tidy()
	list := make([]object, len(active))
	for i, t := range active {
		list[i] = t.rule
		if !t.rule.has("algorithm", "limits") {
			t.rule.put("algorithm", "token_bucket")
		}
	}
	return marshal(map[string]any{"rules": list})
}
