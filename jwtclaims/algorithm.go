// SPDX-License-Identifier: Apache-2.0

package jwtclaims

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"

	"github.com/MicahParks/jwkset"
)

// Bounds of RSA key sizes in bits. Shorter keys can be broken; longer ones make verification expensive.
const (
	minRSABits = 2048
	maxRSABits = 8192
)

// algorithms maps each algorithm to a check of its keys. "none" is not included.
var algorithms = map[string]func(key any) error{
	"RS256": isRSA, "RS384": isRSA, "RS512": isRSA,
	"PS256": isRSA, "PS384": isRSA, "PS512": isRSA,
	"ES256": isECDSAOn(elliptic.P256()), "ES384": isECDSAOn(elliptic.P384()), "ES512": isECDSAOn(elliptic.P521()),
	"EdDSA": isEd25519,
	"HS256": isSecret(256), "HS384": isSecret(384), "HS512": isSecret(512),
}

func isRSA(key any) error {
	k, ok := key.(*rsa.PublicKey)
	if !ok {
		return errKind
	}
	if bits := k.N.BitLen(); bits < minRSABits || bits > maxRSABits {
		return fmt.Errorf("RSA keys must have %d to %d bits, not %d", minRSABits, maxRSABits, bits)
	}
	return nil
}

func isECDSAOn(curve elliptic.Curve) func(any) error {
	return func(key any) error {
		if k, ok := key.(*ecdsa.PublicKey); !ok || k.Curve != curve {
			return errKind
		}
		return nil
	}
}

func isEd25519(key any) error {
	if _, ok := key.(ed25519.PublicKey); !ok {
		return errKind
	}
	return nil
}

// isSecret requires secrets as long as the hash (RFC 7518, section 3.2). Shorter ones can be guessed.
func isSecret(bits int) func(any) error {
	return func(key any) error {
		k, ok := key.([]byte)
		if !ok {
			return errKind
		}
		if len(k)*8 < bits {
			return fmt.Errorf("secrets must have at least %d bits, not %d", bits, len(k)*8)
		}
		return nil
	}
}

// errKind means that a key is for other algorithms. This is normal, because key sets have keys of many kinds.
var errKind = errors.New("no configured algorithm uses this kind of key")

func fits(algorithm string, jwk jwkset.JWK) error {
	meta := jwk.Marshal()
	switch {
	case meta.USE != "" && meta.USE != jwkset.UseSig:
		return fmt.Errorf("its use is %q, not sig", meta.USE)
	case len(meta.KEYOPS) > 0 && !slices.Contains(meta.KEYOPS, jwkset.KeyOpsVerify):
		return fmt.Errorf("its key_ops are %q, without verify", meta.KEYOPS)
	case meta.ALG != "" && meta.ALG.String() != algorithm:
		return errKind
	}
	return algorithms[algorithm](jwk.Key())
}
