// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/metehq/mete/cmd/internal/policysign"
)

// errFellBehind is the error of a policy that is older than the one in force, or
// may be. A signature does not tell: the old policy was signed, too.
var errFellBehind = errors.New("bundle_version must grow")

// inForce is what is known of the policy file in force.
type inForce struct {
	version int64 // its bundle_version; 0: it has none
	digest  [sha256.Size]byte
}

// admits says why a file must not take the place of the one in force. The same
// contents always may, and so may anything where there was no bundle_version.
func (f inForce) admits(version int64, digest [sha256.Size]byte) error {
	switch {
	case f.version == 0 || digest == f.digest || version > f.version:
		return nil
	case version == 0:
		return fmt.Errorf("%w: the file has none, and %d is in force", errFellBehind, f.version)
	case version == f.version:
		return fmt.Errorf("%w: %d is in force with other contents", errFellBehind, version)
	}
	return fmt.Errorf("%w: it is %d, and %d is in force; to go back, give the old rules a higher one", errFellBehind, version, f.version)
}

// unreadable is what is logged where a policy was not even looked into.
func unreadable(err error) string {
	if errors.Is(err, policysign.ErrSignature) {
		return "the policy is not signed; the old one stays in force"
	}
	return "cannot read the policy; the old one stays in force"
}
