// SPDX-License-Identifier: Apache-2.0

package jwtclaims

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete/internal/httpfacts"
)

// Defaults and bounds of a [Config].
const (
	defaultFileInterval = time.Second
	defaultURLInterval  = 5 * time.Minute
	minInterval         = 10 * time.Millisecond
	maxInterval         = 24 * time.Hour
	maxLeeway           = 10 * time.Minute
	maxTokenBytes       = 64 << 10
	defaultTokens       = 4096
	maxTokens           = 1 << 20
)

// Config holds the settings of a [Verifier]. Only KeySet is required.
type Config struct {
	// KeySet is the JSON Web Key Set: the path of a file, or an http or https URL. Use http only on a trusted
	// network, because an attacker on the connection could forge tokens.
	KeySet string

	// Algorithms are the accepted signature algorithms: RS256 to RS512, PS256 to PS512, ES256 to ES512, EdDSA
	// (Ed25519), and HS256 to HS512. The key set must contain the secrets of the HS algorithms. If empty, RS256,
	// PS256, ES256 and EdDSA.
	Algorithms []string

	// Issuer, if not empty, must be equal to iss.
	Issuer string

	// Audience, if not empty, must contain at least one value of aud. Set it if the issuer serves other audiences
	// too.
	Audience []string

	// Leeway is the tolerated clock difference to the issuer for exp and nbf, at most 10 minutes.
	Leeway time.Duration

	// MaxTokenBytes bounds the length of a token, at most 64 KiB. Longer tokens are rejected. Zero means 8 KiB.
	MaxTokenBytes int

	// CachedTokens is the minimum number of verified tokens in the cache, at most 2^20; the cache holds up to
	// twice as many. A cached token costs a hash instead of a signature verification. Zero means 4096.
	CachedTokens int

	// Interval is the time between two reads of the key set, from 10 milliseconds to one day. Zero means one
	// second for a file and five minutes for a URL. A token with an unknown key triggers a read, at most every 10
	// seconds.
	Interval time.Duration

	// Client fetches the URL. If nil, its timeout is 5 seconds. Redirects from https to http are never followed.
	Client *http.Client

	// Logger logs active keys, errors in reading the key set and, at most once per minute, why tokens are
	// rejected. It never logs tokens. If nil, nothing is logged.
	Logger *slog.Logger
}

// defaultAlgorithms has the strongest common algorithm of each asymmetric kind.
var defaultAlgorithms = []string{"RS256", "PS256", "ES256", "EdDSA"}

func (c Config) withDefaults() (Config, error) {
	var wrong []error
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf("jwtclaims: "+format, args...)) }

	if err := CheckKeySet(c.KeySet); err != nil {
		wrong = append(wrong, err)
	}
	if err := CheckAlgorithms(c.Algorithms); err != nil {
		wrong = append(wrong, err)
	}
	if c.Leeway < 0 || c.Leeway > maxLeeway {
		fail("leeway must be between 0 and %v, not %v", maxLeeway, c.Leeway)
	}
	if c.MaxTokenBytes < 0 || c.MaxTokenBytes > maxTokenBytes {
		fail("max token bytes must be between 0 and %d, not %d", maxTokenBytes, c.MaxTokenBytes)
	}
	if c.CachedTokens < 0 || c.CachedTokens > maxTokens {
		fail("remembered tokens must be between 0 and %d, not %d", maxTokens, c.CachedTokens)
	}
	if c.Interval != 0 && (c.Interval < minInterval || c.Interval > maxInterval) {
		fail("interval must be between %v and %v, not %v", minInterval, maxInterval, c.Interval)
	}

	c.Algorithms = slices.Clone(c.Algorithms)
	if len(c.Algorithms) == 0 {
		c.Algorithms = slices.Clone(defaultAlgorithms)
	}
	c.Audience = slices.Clone(c.Audience)
	c.MaxTokenBytes = cmp.Or(c.MaxTokenBytes, httpfacts.MaxTokenBytes)
	c.CachedTokens = cmp.Or(c.CachedTokens, defaultTokens)
	interval := defaultFileInterval
	if isURL(c.KeySet) {
		interval = defaultURLInterval
	}
	c.Interval = cmp.Or(c.Interval, interval)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, errors.Join(wrong...)
}

func isURL(keySet string) bool { return strings.Contains(keySet, "://") }

// redactKeySet removes the query of a URL, which may contain a credential, for logs.
func redactKeySet(keySet string) string {
	if before, _, ok := strings.Cut(keySet, "?"); ok && isURL(keySet) {
		return before + "?…"
	}
	return keySet
}

// CheckKeySet validates a [Config.KeySet] without reading it.
func CheckKeySet(keySet string) error {
	if keySet == "" {
		return errors.New("jwtclaims: key set is required: a file or a URL")
	}
	if !isURL(keySet) {
		return nil
	}
	u, err := url.Parse(keySet)
	switch {
	case err != nil || u.Host == "": // not quoted, because it may contain a password
		return errors.New("jwtclaims: key set: not a URL such as https://id.example.com/jwks.json")
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("jwtclaims: key set: %q is neither an http nor an https URL", u.Redacted())
	case u.User != nil || u.Fragment != "":
		return errors.New("jwtclaims: key set: the URL must have neither a user nor a fragment")
	}
	return nil
}

// CheckAlgorithms validates [Config.Algorithms]. Unknown algorithms, duplicates and "none" are errors.
func CheckAlgorithms(names []string) error {
	for i, name := range names {
		switch {
		case strings.EqualFold(strings.TrimSpace(name), "none"):
			return fmt.Errorf("jwtclaims: algorithm %q is not a signature: anyone could forge tokens", name)
		case algorithms[name] == nil:
			return fmt.Errorf("jwtclaims: unknown algorithm %q: known are RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, HS256, HS384 and HS512", name)
		case slices.Contains(names[:i], name):
			return fmt.Errorf("jwtclaims: duplicate algorithm %s", name)
		}
	}
	return nil
}
