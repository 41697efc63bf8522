// SPDX-License-Identifier: Apache-2.0

package topkeys

import "fmt"

// A Kind says what is counted of a key.
type Kind uint8

const (
	Denied Kind = iota // requests that a limit denied
	Shadow             // requests that a limit would deny, but for its rule's shadow
	Near               // requests that were admitted, and left little: see [mete.Status.Near]

	kinds = iota
)

var kindNames = [kinds]string{Denied: "denied", Shadow: "shadow", Near: "near"}

// String returns the kind as a word: denied, shadow or near.
func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// ParseKind reads the word of a kind.
func ParseKind(s string) (Kind, error) {
	for k, name := range kindNames {
		if name == s {
			return Kind(k), nil
		}
	}
	return 0, fmt.Errorf("topkeys: kind %.40q: must be denied, shadow or near", s)
}
