// SPDX-License-Identifier: Apache-2.0

package topkeys

import "fmt"

// A Kind is a kind of record.
type Kind uint8

const (
	KindDenied Kind = iota // requests that a limit denied
	KindShadow             // requests that a limit in shadow mode would deny
	KindNear               // allowed requests near the limit: see [mete.Status.Near]

	kinds = iota
)

var kindNames = [kinds]string{KindDenied: "denied", KindShadow: "shadow", KindNear: "near"}

// String returns "denied", "shadow" or "near".
func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// ParseKind parses the result of [Kind.String].
func ParseKind(s string) (Kind, error) {
	for k, name := range kindNames {
		if name == s {
			return Kind(k), nil
		}
	}
	return 0, fmt.Errorf("topkeys: kind %.40q: must be denied, shadow or near", s)
}
