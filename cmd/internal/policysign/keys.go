// SPDX-License-Identifier: Apache-2.0

package policysign

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/metehq/mete/cmd/internal/smallfile"
)

// The PEM types of the keys, as openssl writes them.
const (
	privateType = "PRIVATE KEY" // PKCS #8
	publicType  = "PUBLIC KEY"  // PKIX
)

// ReadKeys reads public keys from PEM files. A file may contain several keys.
func ReadKeys(paths ...string) (Keys, error) {
	var keys Keys
	for _, path := range paths {
		data, err := smallfile.Read(path, maxBytes)
		if err != nil {
			return nil, err
		}
		before := len(keys)
		for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
			key, err := publicKey(block)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			keys = append(keys, key)
		}
		if len(keys) == before {
			return nil, fmt.Errorf("%s: no PEM block of type %s", path, publicType)
		}
	}
	return keys, nil
}

func publicKey(block *pem.Block) (ed25519.PublicKey, error) {
	switch block.Type {
	case privateType:
		return nil, errors.New("this is a private key for signing: use the public key here, and keep the private key away from servers")
	case publicType:
	default:
		return nil, fmt.Errorf("PEM block has type %q, want %s", block.Type, publicType)
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	key, ok := parsed.(ed25519.PublicKey)
	if err != nil || !ok {
		return nil, errors.New("not an Ed25519 public key")
	}
	return key, nil
}

// ReadPrivateKey reads a signing key from a PEM file, as "openssl genpkey -algorithm ed25519" writes it.
func ReadPrivateKey(path string) (ed25519.PrivateKey, error) {
	data, err := smallfile.Read(path, maxBytes)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	switch {
	case block == nil:
		return nil, fmt.Errorf("%s: no PEM block of type %s", path, privateType)
	case block.Type == publicType:
		return nil, fmt.Errorf("%s: this is a public key: signing needs the private one", path)
	case block.Type == "ENCRYPTED "+privateType:
		return nil, fmt.Errorf("%s: the key is encrypted: decrypt it first, as openssl pkey does", path)
	case block.Type != privateType:
		return nil, fmt.Errorf("%s: PEM block has type %q, want %s", path, block.Type, privateType)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, fmt.Errorf("%s: not an Ed25519 private key", path)
	}
	return key, nil
}

// CreateKeyPair creates a key pair in two new files. Only the owner can read the private one.
func CreateKeyPair(privatePath, publicPath string) error {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	privateDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	publicDER, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return err
	}
	if err := writeNew(privatePath, 0o600, privateType, privateDER); err != nil {
		return err
	}
	return writeNew(publicPath, 0o644, publicType, publicDER)
}

// writeNew writes a PEM file. It never overwrites a file, because the old key would be lost.
func writeNew(path string, mode fs.FileMode, kind string, der []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	err = pem.Encode(f, &pem.Block{Type: kind, Bytes: der})
	return errors.Join(err, f.Close())
}
