// SPDX-License-Identifier: Apache-2.0

// Package policysign signs policy files and verifies the signatures. Without the private key, an attacker with
// write access to the files cannot change the policy.
//
// The signature of policy.yaml is policy.yaml.sig. Its first line specifies the format. Its second line is the
// Ed25519 signature of the file's exact bytes in base64. OpenSSL can create and verify it, too:
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
	// Suffix is appended to the name of a file to name its signature.
	Suffix = ".sig"

	header = "mete-policy-signature-v1 ed25519"

	maxBytes = 64 << 10
)

// ErrSignature is the error of a file without a valid signature by one of the keys.
var ErrSignature = errors.New("no valid signature")

func Sign(key ed25519.PrivateKey, data []byte) []byte {
	return []byte(header + "\n" + base64.StdEncoding.EncodeToString(ed25519.Sign(key, data)) + "\n")
}

// Keys are trusted public keys. A signature by any of them is valid, so that keys can be rotated.
type Keys []ed25519.PublicKey

// Check verifies data, the contents of the file at path, with the signature file next to it. It returns
// [ErrSignature] for an invalid or missing signature. The caller must use data and not read the file again,
// because it may have changed.
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

// Verify verifies data with the contents of a signature file.
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
	return errors.New("the signature is for other contents or by another key")
}

// readSignature reads a signature. It only accepts regular files, because reading a pipe might never end.
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
