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

// The sizes of RSA keys, in bits. Shorter ones can be broken; longer ones make a
// token expensive to verify for everybody but who sends it.
const (
	leastRSABits = 2048
	mostRSABits  = 8192
)

// algorithms has for each algorithm what key it verifies by: the error says what
// is wrong with the key. There is none for "none".
var algorithms = map[string]func(key any) error{
	"RS256": isRSA, "RS384": isRSA, "RS512": isRSA,
	"PS256": isRSA, "PS384": isRSA, "PS512": isRSA,
	"ES256": isOn(elliptic.P256()), "ES384": isOn(elliptic.P384()), "ES512": isOn(elliptic.P521()),
	"EdDSA": isEd25519,
	"HS256": isSecret(256), "HS384": isSecret(384), "HS512": isSecret(512),
}

func isRSA(key any) error {
	k, ok := key.(*rsa.PublicKey)
	if !ok {
		return errKind
	}
	if bits := k.N.BitLen(); bits < leastRSABits || bits > mostRSABits {
		return fmt.Errorf("RSA keys must have %d to %d bits, not %d", leastRSABits, mostRSABits, bits)
	}
	return nil
}

func isOn(curve elliptic.Curve) func(any) error {
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

// isSecret wants secrets as long as the hash (RFC 7518, 3.2): shorter ones are
// found by trying.
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

// errKind says that a key is none of the algorithm's. It is no mistake: a set has
// keys of many kinds.
var errKind = errors.New("none of the pinned algorithms is for such a key")

// fits says why a key is not for an algorithm, or nil.
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
