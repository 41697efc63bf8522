// SPDX-License-Identifier: Apache-2.0

package rules

// Export returns the active rules as a policy file, in JSON. It says the same as they
// do, and [Set.Import] of it changes none of them. What it says may yet have mistakes,
// and is nothing but the rules that it can say: see [Set.Compile].
func (s *Set) Export() []byte {
	active, _ := s.translations()
	for _, t := range active {
		if !t.rule.has("algorithm", "limits") {
			t.rule.put("algorithm", "token_bucket")
		}
	}
	chapters, _ := chaptersOf(active)
	list := make([]object, len(chapters))
	for i, c := range chapters {
		groups := groupsOf(c.rules)
		groups.tidy()
		list[i] = object{"id": marshal(c.id()), "spec": marshal(c.spec())}
	}
	switch {
	case len(chapters) == 0:
		return marshal(map[string]any{"rules": []object{}})
	case len(chapters) == 1 && chapters[0].name == "":
		return list[0]["spec"]
	}
	return marshal(map[string]any{"policies": list})
}
