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
	// maxKeys bounds a key set. A larger one is rejected.
	maxKeys = 256

	// maxUnnamed bounds the keys that fit a token without a key ID. With more, the token is rejected.
	maxUnnamed = 4

	// maxNotes bounds the number of ignored keys in a log line.
	maxNotes = 5
)

// keys is one version of a key set with the tokens that it verified. Both are dropped when the keys change.
type keys struct {
	count      int // number of usable keys
	ignored    []string
	finders    map[string]keyfunc.Keyfunc // by algorithm, each with the keys that fit it
	remembered *memory
	refused    *refusals
}

func noKeys() *keys {
	return &keys{remembered: newMemory(1), refused: new(refusals)}
}

// readKeys parses a key set. Keys for other algorithms are ignored. A private key is an error. A set without
// usable keys is valid: the issuer may have withdrawn all of them.
func readKeys(data []byte, c Config) (*keys, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, errors.New("not a key set: must be a JSON object with a list of keys")
	}
	switch {
	case set.Keys == nil:
		return nil, errors.New("not a key set: the list of keys is missing")
	case len(set.Keys) > maxKeys:
		return nil, fmt.Errorf("more than %d keys", maxKeys)
	}
	k := &keys{finders: map[string]keyfunc.Keyfunc{}, remembered: newMemory(c.CachedTokens), refused: new(refusals)}
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

func (k *keys) add(i int, raw json.RawMessage, algorithms []string, fitting map[string][]jwkset.JWK) error {
	var parts jwkset.JWKMarshal
	if err := json.Unmarshal(raw, &parts); err != nil {
		return fmt.Errorf("key %d is not a JSON Web Key", i)
	}
	if parts.D != "" {
		return fmt.Errorf("key %q contains its private part, so readers could forge tokens: remove it, and replace the key if the set was published", parts.KID)
	}
	// Only symmetric keys need Private.
	jwk, err := jwkset.NewJWKFromMarshal(parts, jwkset.JWKMarshalOptions{Private: parts.KTY == jwkset.KtyOct}, jwkset.JWKValidateOptions{})
	if err != nil {
		k.ignore(parts.KID, err)
		return nil
	}
	fitted, why := false, errKind
	for _, algorithm := range algorithms {
		misfit := fits(algorithm, jwk)
		switch {
		case misfit == nil && hasKID(fitting[algorithm], parts.KID):
			return fmt.Errorf("duplicate key ID for %s: %q", algorithm, parts.KID)
		case misfit == nil:
			fitting[algorithm], fitted = append(fitting[algorithm], jwk), true
		case why == errKind: // any other error is more specific
			why = misfit
		}
	}
	if fitted {
		k.count++
	} else {
		k.ignore(parts.KID, why)
	}
	return nil
}

func (k *keys) ignore(kid string, why error) {
	k.ignored = append(k.ignored, fmt.Sprintf("key %q: %v", kid, why))
}

func hasKID(keys []jwkset.JWK, kid string) bool {
	return kid != "" && slices.ContainsFunc(keys, func(k jwkset.JWK) bool { return k.Marshal().KID == kid })
}

func (k *keys) notes() string {
	return strings.Join(k.ignored[:min(len(k.ignored), maxNotes)], "; ")
}

var errUnknownKey = errors.New("jwtclaims: unknown key")

// errCritical means that a token has critical extensions, which are not supported (RFC 7515, section 4.1.11).
var errCritical = errors.New("jwtclaims: critical extension")

// find returns the keys to verify token, all of its algorithm's kind. The algorithm must be an accepted one.
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
