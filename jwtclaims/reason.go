// SPDX-License-Identifier: Apache-2.0

package jwtclaims

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// A Reason is why a token was refused.
type Reason string

// The reasons, in the order in which they are looked for.
const (
	SeveralHeaders Reason = "several_headers" // more than one Authorization header
	Oversized      Reason = "oversized"       // longer than Config.MaxTokenBytes
	Malformed      Reason = "malformed"       // no token, or beyond a bound
	BadAlgorithm   Reason = "algorithm"       // one that is not in Config.Algorithms, or none
	NoExpiry       Reason = "no_expiry"       // without exp, or with one that is no time
	UnknownKey     Reason = "unknown_key"     // of a key that is not in the set
	BadSignature   Reason = "signature"       // not signed by the key it names
	Expired        Reason = "expired"         // exp has passed
	NotYetValid    Reason = "not_yet_valid"   // nbf is still to come
	BadIssuer      Reason = "issuer"          // iss is another one, or missing
	BadAudience    Reason = "audience"        // aud is for others, or missing
)

// reasons are all of them.
var reasons = [...]Reason{SeveralHeaders, Oversized, Malformed, BadAlgorithm, NoExpiry, UnknownKey, BadSignature, Expired, NotYetValid, BadIssuer, BadAudience}

// missing reports whether a token lacks a claim that is required.
func missing(err error) bool { return errors.Is(err, jwt.ErrTokenRequiredClaimMissing) }

// reasonOf translates the error of the parser. Where a token has several faults it
// is the first.
func reasonOf(err error) Reason {
	for _, known := range []struct {
		err    error
		reason Reason
	}{
		{errUnknownKey, UnknownKey},
		{errCritical, Malformed},
		{jwt.ErrTokenMalformed, Malformed},
		{jwt.ErrTokenSignatureInvalid, BadSignature},
		{jwt.ErrInvalidType, Malformed},
		{jwt.ErrTokenExpired, Expired},
		{jwt.ErrTokenNotValidYet, NotYetValid},
		{jwt.ErrTokenInvalidIssuer, BadIssuer},
		{jwt.ErrTokenInvalidAudience, BadAudience},
	} {
		if errors.Is(err, known.err) {
			return known.reason
		}
	}
	return Malformed
}

// logInterval is the time between two records of refused tokens: whoever sends them
// shall not fill the log.
const logInterval = time.Minute

// A tally counts refused tokens and logs them, the first at once and then at most
// once each logInterval. It is safe for concurrent use.
type tally struct {
	log    *slog.Logger
	counts [len(reasons)]atomic.Int64

	mu   sync.Mutex // guards the fields below
	said [len(reasons)]int64
	last time.Time
}

// count counts a token that was refused.
func (t *tally) count(reason Reason, now time.Time) {
	for i, r := range reasons {
		if r == reason {
			t.counts[i].Add(1)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.last.IsZero() && now.Sub(t.last) < logInterval {
		return
	}
	t.last = now
	var parts []string
	for i, r := range reasons {
		n := t.counts[i].Load()
		if n > t.said[i] {
			parts = append(parts, fmt.Sprintf("%s=%d", r, n-t.said[i]))
		}
		t.said[i] = n
	}
	t.log.Warn("bearer tokens refused, claims missing", "reasons", strings.Join(parts, " "))
}

// all returns the counts of every reason.
func (t *tally) all() map[Reason]int64 {
	counts := make(map[Reason]int64, len(reasons))
	for i, r := range reasons {
		counts[r] = t.counts[i].Load()
	}
	return counts
}
