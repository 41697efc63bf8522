// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/metehq/mete/cmd/internal/policysign"
	"github.com/metehq/mete/cmd/internal/smallfile"
	"github.com/metehq/mete/internal/atomicfile"
	"github.com/metehq/mete/policy"
)

const (
	// StateName is the name of the file in the state directory.
	StateName = "policy-bundle.json"

	// maxStateBytes bounds the file, which contains a bundle and its signature in base64.
	maxStateBytes = 2*policy.MaxFileBytes + 64<<10
)

// A savedBundle is the last valid bundle on disk.
type savedBundle struct {
	// Source is a hash of the address. A bundle of another source is ignored.
	Source    string    `json:"source"`
	ETag      string    `json:"etag,omitempty"`
	Confirmed time.Time `json:"confirmed"` // the source last had this bundle then
	Signature []byte    `json:"signature"`
	Bundle    []byte    `json:"bundle"`
}

// sourceID returns the hash of an address, which may contain credentials.
func sourceID(shown string) string {
	sum := sha256.Sum256([]byte(shown))
	return hex.EncodeToString(sum[:])
}

// readState reads the saved bundle. It verifies the signature again, because others may be able to write to the
// disk. It returns nil if there is no bundle from this source.
func readState(path, source string, keys policysign.Keys) (*savedBundle, error) {
	text, err := smallfile.Read(path, maxStateBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var k savedBundle
	if err := json.Unmarshal(text, &k); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if k.Source != source {
		return nil, nil
	}
	if err := keys.Verify(k.Bundle, k.Signature); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, policysign.ErrSignature, err)
	}
	return &k, nil
}

// write replaces the file atomically. Only its owner can read it.
func (k *savedBundle) write(path string) error {
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, text, 0o600)
}
