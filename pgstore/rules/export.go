// SPDX-License-Identifier: Apache-2.0

package rules

// Export returns the active rules and the documents of their policies as a policy file in JSON. The file makes
// the same decisions as the rows, and its [Set.Import] changes no row. Export does not validate: [Set.Compile]
// does.
func (s *Set) Export() []byte {
	byPolicy, _ := s.policies()
	file, _ := parseObject(s.Policies[""]) // a CHECK constraint verified that it is an object
	if len(byPolicy) == 0 {
		file.set("rules", []object{})
		return marshal(file)
	}
	list := make([]object, len(byPolicy))
	for i, c := range byPolicy {
		same := map[string]int{} // rules with the same limit_keys
		for _, doc := range c.docs {
			same[keysOf(doc)]++
		}
		c.addGroups(func(doc object) bool { return same[keysOf(doc)] > 1 })
		list[i] = object{"id": marshal(c.id), "spec": marshal(c.buildSpec(s.Policies[c.id]))}
	}
	if len(list) > 1 || byPolicy[0].id != DefaultPolicy {
		file.set("policies", list)
		return marshal(file)
	}
	spec := byPolicy[0].buildSpec(s.Policies[DefaultPolicy])
	for field, value := range file {
		if spec[field] == nil { // a policy's field precedes the bundle's
			spec[field] = value
		}
	}
	return marshal(spec)
}
