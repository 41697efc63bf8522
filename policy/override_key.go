// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/netip"
	"strings"
)

// checkKey explains why no bucket of r has a key with these components. It returns "" if one can. An override
// for an impossible key would silently have no effect.
func (r *Rule) checkKey(components string) (reason, hint string) {
	const spelling = "write it as an explanation shows it"
	parts := splitComponents(components)
	labels := make([]string, len(r.keys))
	for i := range r.keys {
		labels[i] = r.keys[i].name()
	}
	form := `after the first colon it has to be "` + strings.Join(labels, labelEnd+"…"+partEnd) + labelEnd + `…"`
	if len(labels) == 0 {
		form = "nothing stands after its colon"
	}
	if len(parts) != len(labels) {
		return "no key of the rule has so many attributes", form
	}
	for i, part := range parts {
		label, value := splitComponent(part)
		switch k := &r.keys[i]; {
		case label != labels[i]:
			return "no key of the rule is like that", form
		case k.bits > 0 && !isAddress(value, k.bits) && value != "":
			return "the address in it is not one of a key", spelling
		case k.bits == 0 && k.secret && value != "" && !isHashed(value):
			return "what may be a secret stands in keys as a hash", "say match"
		case k.bits == 0 && !isValue(value):
			return "the value in it is not written as in a key", spelling + ", or say match"
		}
	}
	return "", ""
}

// isAddress reports whether appendAddress can write s.
func isAddress(s string, bits int) bool {
	if a, err := netip.ParseAddr(s); err == nil {
		return a.Is4() && a.String() == s
	}
	p, err := netip.ParsePrefix(s)
	return err == nil && p.Addr().Is6() && p.Bits() == bits && p.Masked().String() == s
}
