// SPDX-License-Identifier: Apache-2.0

// Package policysign signs policy files and verifies them, so that who can write
// to where they lie cannot change what is allowed.
//
// The signature of policy.yaml is policy.yaml.sig: a line that names the form, and
// the Ed25519 signature of the file's exact bytes in base64. Who has no mete can
// make and check it, too:
//
//	openssl pkeyutl -sign -inkey private.pem -rawin -in policy.yaml | base64 -w0
package policysign

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"os"

	"github.com/metehq/mete/cmd/internal/smallfile"
)

const (
	// Suffix is what the name of a signature has behind that of the file.
	Suffix = ".sig"

	// header is the first line of a signature.
	header = "mete-policy-signature-v1 ed25519"

	// maxBytes bounds signatures and files of keys. Larger ones are refused.
	maxBytes = 64 << 10
)

// ErrSignature is the error of a file that is not signed by any of the keys, or not
// at all.
var ErrSignature = errors.New("no valid signature")

// Sign returns the contents of the signature file for data.
func Sign(key ed25519.PrivateKey, data []byte) []byte {
	return []byte(header + "\n" + base64.StdEncoding.EncodeToString(ed25519.Sign(key, data)) + "\n")
}

// Keys are the public keys that signatures are believed of: any of them, so that one
// can take the place of another.
type Keys []ed25519.PublicKey

// Check verifies data, the contents of the file at path, by the signature beside it.
// Whatever is wrong with it, a missing one included, is an [ErrSignature]. Only data
// may be used then: the file can have changed since.
func (k Keys) Check(path string, data []byte) error {
	signature, err := readSignature(path + Suffix)
	if err == nil {
		err = k.Verify(data, signature)
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %w", path, ErrSignature, err)
	}
	return nil
}

// Verify checks data by the contents of a signature file.
func (k Keys) Verify(data, file []byte) error {
	first, rest, _ := bytes.Cut(file, []byte("\n"))
	if string(bytes.TrimSuffix(first, []byte("\r"))) != header {
		return fmt.Errorf("the signature does not begin with %q", header)
	}
	signature, err := base64.StdEncoding.Strict().DecodeString(string(bytes.TrimSpace(rest)))
	if err != nil || len(signature) != ed25519.SignatureSize {
		return fmt.Errorf("the signature is not %d bytes in base64", ed25519.SignatureSize)
	}
	for _, key := range k {
		if ed25519.Verify(key, data, signature) {
			return nil
		}
	}
	return errors.New("the signature is of other contents, or by another key")
}

// readSignature reads a signature. Who can write to where it lies could put a pipe
// there, of which reading has no end.
func readSignature(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	return smallfile.Read(path, maxBytes)
}
