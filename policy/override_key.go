// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/netip"
	"strings"
)

// checkKey explains why no bucket of r has a key with these components. It returns "" if a bucket can. An override for
// an impossible key would silently have no effect.
func (r *Rule) checkKey(components string) (reason, hint string) {
	const spelling = "copy it from the explanation of a decision"
	parts := splitComponents(components)
	labels := make([]string, len(r.keys))
	for i := range r.keys {
		labels[i] = r.keys[i].name()
	}
	form := `after the first colon, write "` + strings.Join(labels, labelEnd+"…"+partEnd) + labelEnd + `…"`
	if len(labels) == 0 {
		form = "write nothing after the colon"
	}
	if len(parts) != len(labels) {
		return "keys of the rule have a different number of attributes", form
	}
	for i, part := range parts {
		label, value := splitComponent(part)
		switch k := &r.keys[i]; {
		case label != labels[i]:
			return "keys of the rule have other attributes", form
		case k.bits > 0 && !isAddress(value, k.bits) && value != "":
			return "the address is not in the form that keys use", spelling
		case k.bits == 0 && k.secret && value != "" && !isHashed(value):
			return "keys contain a hash of values that may be secrets", "use match"
		case k.bits == 0 && !isValue(value):
			return "the value is not in the form that keys use", spelling + ", or use match"
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
