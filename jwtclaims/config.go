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

// The defaults and bounds of a [Config].
const (
	defaultFileInterval = time.Second
	defaultURLInterval  = 5 * time.Minute
	leastInterval       = 10 * time.Millisecond
	mostInterval        = 24 * time.Hour
	mostLeeway          = 10 * time.Minute
	mostTokenBytes      = 64 << 10
	defaultTokens       = 4096
	mostTokens          = 1 << 20
)

// Config are the settings of a [Verifier]. Only KeySet is required.
type Config struct {
	// KeySet is the JSON Web Key Set: the path of a file, or an http or https URL.
	// Plain http is for hosts that nobody can come between: who can, writes tokens.
	KeySet string

	// Algorithms are those that tokens may be signed by, and no others are
	// accepted: RS256 to RS512, PS256 to PS512, ES256 to ES512, EdDSA (Ed25519), and
	// HS256 to HS512, whose secrets the key set must then hold. If empty, RS256,
	// PS256, ES256 and EdDSA.
	Algorithms []string

	// Issuer, if set, is what iss must be, to the letter.
	Issuer string

	// Audience, if not empty, is what aud must name at least one of. Set it where
	// the issuer signs tokens for others, too.
	Audience []string

	// Leeway is how far the clocks of the issuer and of this machine may be apart, at
	// most 10 minutes: exp and nbf are that much later and earlier.
	Leeway time.Duration

	// MaxTokenBytes bounds a token, at most 64 KiB; a longer one is refused. If 0,
	// 8 KiB.
	MaxTokenBytes int

	// RememberedTokens is how many verified tokens are remembered at least, at most
	// 2^20: twice as many are held. A request with one of them costs a hash and no
	// signature. If 0, 4096.
	RememberedTokens int

	// Interval is between two looks at the key set, from 10 milliseconds to a day. If
	// 0, a second for a file and five minutes for a URL. A token whose key is not
	// there brings the next look forward, to 10 seconds after the last one.
	Interval time.Duration

	// Client fetches the URL. If nil, one of its own that takes 5 seconds at most.
	// Whichever it is, it never follows from https to http.
	Client *http.Client

	// Logger is told which keys are in force, when the set cannot be read and, once a
	// minute at most, why tokens are refused; never a token. Nil logs nothing.
	Logger *slog.Logger
}

// defaultAlgorithms are the strongest common one of each asymmetric kind.
var defaultAlgorithms = []string{"RS256", "PS256", "ES256", "EdDSA"}

// withDefaults checks c, reports all mistakes and fills in what is not said.
func (c Config) withDefaults() (Config, error) {
	var wrong []error
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf("jwtclaims: "+format, args...)) }

	if err := CheckKeySet(c.KeySet); err != nil {
		wrong = append(wrong, err)
	}
	if err := CheckAlgorithms(c.Algorithms); err != nil {
		wrong = append(wrong, err)
	}
	if c.Leeway < 0 || c.Leeway > mostLeeway {
		fail("leeway must be between 0 and %v, not %v", mostLeeway, c.Leeway)
	}
	if c.MaxTokenBytes < 0 || c.MaxTokenBytes > mostTokenBytes {
		fail("max token bytes must be between 0 and %d, not %d", mostTokenBytes, c.MaxTokenBytes)
	}
	if c.RememberedTokens < 0 || c.RememberedTokens > mostTokens {
		fail("remembered tokens must be between 0 and %d, not %d", mostTokens, c.RememberedTokens)
	}
	if c.Interval != 0 && (c.Interval < leastInterval || c.Interval > mostInterval) {
		fail("interval must be between %v and %v, not %v", leastInterval, mostInterval, c.Interval)
	}

	c.Algorithms = slices.Clone(c.Algorithms)
	if len(c.Algorithms) == 0 {
		c.Algorithms = slices.Clone(defaultAlgorithms)
	}
	c.Audience = slices.Clone(c.Audience)
	c.MaxTokenBytes = cmp.Or(c.MaxTokenBytes, httpfacts.MaxTokenBytes)
	c.RememberedTokens = cmp.Or(c.RememberedTokens, defaultTokens)
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

// isURL tells a URL from a path.
func isURL(keySet string) bool { return strings.Contains(keySet, "://") }

// shown is a key set's name for people: of a URL, what stands before its query, which
// may have a credential in it.
func shown(keySet string) string {
	if before, _, ok := strings.Cut(keySet, "?"); ok && isURL(keySet) {
		return before + "?…"
	}
	return keySet
}

// CheckKeySet says what is wrong with a [Config.KeySet] before it is read.
func CheckKeySet(keySet string) error {
	if keySet == "" {
		return errors.New("jwtclaims: no key set: name a file or a URL")
	}
	if !isURL(keySet) {
		return nil
	}
	u, err := url.Parse(keySet)
	switch {
	case err != nil || u.Host == "": // whatever it is, it may hold a password
		return errors.New("jwtclaims: key set: not a URL such as https://id.example.com/jwks.json")
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("jwtclaims: key set: %q is neither an http nor an https URL", u.Redacted())
	case u.User != nil || u.Fragment != "":
		return errors.New("jwtclaims: key set: the URL must have neither a user nor a fragment")
	}
	return nil
}

// CheckAlgorithms says what is wrong with [Config.Algorithms]: one that is not
// known, "none" in any spelling, or one that is there twice.
func CheckAlgorithms(names []string) error {
	for i, name := range names {
		switch {
		case strings.EqualFold(strings.TrimSpace(name), "none"):
			return fmt.Errorf("jwtclaims: algorithm %q is no signature: anybody could write tokens", name)
		case algorithms[name] == nil:
			return fmt.Errorf("jwtclaims: unknown algorithm %q: known are RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, HS256, HS384 and HS512", name)
		case slices.Contains(names[:i], name):
			return fmt.Errorf("jwtclaims: algorithm %s is there twice", name)
		}
	}
	return nil
}
