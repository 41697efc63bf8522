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

// A Reason is the reason why a token was rejected.
type Reason string

// The reasons, in the order of the checks.
const (
	ReasonSeveralHeaders Reason = "several_headers" // more than one Authorization header
	ReasonOversized      Reason = "oversized"       // longer than Config.MaxTokenBytes
	ReasonMalformed      Reason = "malformed"       // not a token, or too deeply nested
	ReasonBadAlgorithm   Reason = "algorithm"       // not in Config.Algorithms, or missing
	ReasonNoExpiry       Reason = "no_expiry"       // missing or invalid exp
	ReasonUnknownKey     Reason = "unknown_key"     // the key is not in the set
	ReasonBadSignature   Reason = "signature"       // the signature does not match the key
	ReasonExpired        Reason = "expired"         // exp is in the past
	ReasonNotYetValid    Reason = "not_yet_valid"   // nbf is in the future
	ReasonBadIssuer      Reason = "issuer"          // iss is different or missing
	ReasonBadAudience    Reason = "audience"        // aud is different or missing
)

var reasons = [...]Reason{ReasonSeveralHeaders, ReasonOversized, ReasonMalformed, ReasonBadAlgorithm, ReasonNoExpiry, ReasonUnknownKey, ReasonBadSignature, ReasonExpired, ReasonNotYetValid, ReasonBadIssuer, ReasonBadAudience}

func isMissing(err error) bool { return errors.Is(err, jwt.ErrTokenRequiredClaimMissing) }

func reasonOf(err error) Reason {
	for _, known := range []struct {
		err    error
		reason Reason
	}{
		{errUnknownKey, ReasonUnknownKey},
		{errCritical, ReasonMalformed},
		{jwt.ErrTokenMalformed, ReasonMalformed},
		{jwt.ErrTokenSignatureInvalid, ReasonBadSignature},
		{jwt.ErrInvalidType, ReasonMalformed},
		{jwt.ErrTokenExpired, ReasonExpired},
		{jwt.ErrTokenNotValidYet, ReasonNotYetValid},
		{jwt.ErrTokenInvalidIssuer, ReasonBadIssuer},
		{jwt.ErrTokenInvalidAudience, ReasonBadAudience},
	} {
		if errors.Is(err, known.err) {
			return known.reason
		}
	}
	return ReasonMalformed
}

// logInterval is the minimum time between log lines about rejected tokens, which clients could flood.
const logInterval = time.Minute

// A tally counts rejected tokens and logs them: the first one immediately, then at most one line per logInterval.
// It is safe for concurrent use.
type tally struct {
	log    *slog.Logger
	counts [len(reasons)]atomic.Int64

	mu     sync.Mutex // guards the fields below
	logged [len(reasons)]int64
	last   time.Time
}

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
		if n > t.logged[i] {
			parts = append(parts, fmt.Sprintf("%s=%d", r, n-t.logged[i]))
		}
		t.logged[i] = n
	}
	t.log.Warn("bearer tokens rejected", "reasons", strings.Join(parts, " "))
}

func (t *tally) all() map[Reason]int64 {
	counts := make(map[Reason]int64, len(reasons))
	for i, r := range reasons {
		counts[r] = t.counts[i].Load()
	}
	return counts
}
