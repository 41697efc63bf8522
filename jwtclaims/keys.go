// SPDX-License-Identifier: Apache-2.0

package jwtclaims

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
)

const (
	// maxKeys bounds a key set. A larger one is refused.
	maxKeys = 256

	// maxUnnamed bounds the keys that are tried for a token that names none. Where
	// more of them fit, such a token is refused.
	maxUnnamed = 4

	// maxNotes bounds what is logged of the keys that were left out.
	maxNotes = 5
)

// keys are one version of a key set, and all that was found with it: what a
// change of keys must end, goes with them.
type keys struct {
	count      int // of keys that are of use
	leftOut    []string
	finders    map[string]keyfunc.Keyfunc // by algorithm; each knows only keys that fit it
	remembered *memory
	refused    *refusals
}

// noKeys are those of a verifier that has not read its key set yet.
func noKeys() *keys {
	return &keys{remembered: newMemory(1), refused: new(refusals)}
}

// readKeys reads a key set. A key that no algorithm is for is left out; what can
// only be a mistake, such as a private key, is an error. A set without any key of
// use is none: that is what an issuer says who has withdrawn them all.
func readKeys(data []byte, c Config) (*keys, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, errors.New("not a key set: no JSON object with a list of keys")
	}
	switch {
	case set.Keys == nil:
		return nil, errors.New("not a key set: it has no list of keys")
	case len(set.Keys) > maxKeys:
		return nil, fmt.Errorf("more than %d keys", maxKeys)
	}
	k := &keys{finders: map[string]keyfunc.Keyfunc{}, remembered: newMemory(c.RememberedTokens), refused: new(refusals)}
	fitting := map[string][]jwkset.JWK{}
	for i, raw := range set.Keys {
		if err := k.add(i, raw, c.Algorithms, fitting); err != nil {
			return nil, err
		}
	}
	for algorithm, fits := range fitting {
		storage := jwkset.NewMemoryStorage()
		if err := storage.KeyReplaceAll(context.Background(), fits); err != nil {
			return nil, err
		}
		finder, err := keyfunc.New(keyfunc.Options{Storage: storage})
		if err != nil {
			return nil, err
		}
		k.finders[algorithm] = finder
	}
	return k, nil
}

// add puts the key at place i to the algorithms that it fits.
func (k *keys) add(i int, raw json.RawMessage, algorithms []string, fitting map[string][]jwkset.JWK) error {
	var parts jwkset.JWKMarshal
	if err := json.Unmarshal(raw, &parts); err != nil {
		return fmt.Errorf("key %d is no JSON Web Key", i)
	}
	if parts.D != "" {
		return fmt.Errorf("key %q has its private part in it: whoever reads it can write tokens; leave it out, and change the key if the set was published", parts.KID)
	}
	// Only what is secret as a whole needs Private.
	jwk, err := jwkset.NewJWKFromMarshal(parts, jwkset.JWKMarshalOptions{Private: parts.KTY == jwkset.KtyOct}, jwkset.JWKValidateOptions{})
	if err != nil {
		k.leave(parts.KID, err)
		return nil
	}
	fitted, why := false, errKind
	for _, algorithm := range algorithms {
		misfit := fits(algorithm, jwk)
		switch {
		case misfit == nil && named(fitting[algorithm], parts.KID):
			return fmt.Errorf("two keys for %s are called %q", algorithm, parts.KID)
		case misfit == nil:
			fitting[algorithm], fitted = append(fitting[algorithm], jwk), true
		case why == errKind: // anything else says more
			why = misfit
		}
	}
	if fitted {
		k.count++
	} else {
		k.leave(parts.KID, why)
	}
	return nil
}

// leave notes why a key is left out.
func (k *keys) leave(kid string, why error) {
	k.leftOut = append(k.leftOut, fmt.Sprintf("key %q: %v", kid, why))
}

// named reports whether a key of that name is there already.
func named(keys []jwkset.JWK, kid string) bool {
	return kid != "" && slices.ContainsFunc(keys, func(k jwkset.JWK) bool { return k.Marshal().KID == kid })
}

// notes says why keys were left out, of so many as can be read.
func (k *keys) notes() string {
	return strings.Join(k.leftOut[:min(len(k.leftOut), maxNotes)], "; ")
}

// errUnknownKey is the error of a token whose key is not in the set.
var errUnknownKey = errors.New("jwtclaims: unknown key")

// errCritical is the error of a token that must not be accepted by who does not
// know its extensions (RFC 7515, 4.1.11).
var errCritical = errors.New("jwtclaims: critical extension")

// find returns what a token is to be verified by: keys of its algorithm's own
// kind. It is called when the algorithm is known to be one of the pinned.
func (k *keys) find(token *jwt.Token) (any, error) {
	if _, critical := token.Header["crit"]; critical {
		return nil, errCritical
	}
	finder, ok := k.finders[token.Method.Alg()]
	if !ok {
		return nil, errUnknownKey
	}
	if _, named := token.Header["kid"]; !named {
		set, err := finder.VerificationKeySet(context.Background())
		if err != nil || len(set.Keys) > maxUnnamed {
			return nil, errUnknownKey
		}
		return set, nil
	}
	key, err := finder.Keyfunc(token)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnknownKey, err)
	}
	return key, nil
}
