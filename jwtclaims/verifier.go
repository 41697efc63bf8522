// SPDX-License-Identifier: Apache-2.0

package jwtclaims

import (
	"context"
	"crypto/sha256"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/metehq/mete/internal/follow"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/policy"
)

// A Verifier verifies bearer tokens. Create one with [New]. It is safe for concurrent use.
type Verifier struct {
	config Config
	parser *jwt.Parser
	source source
	keys   atomic.Pointer[keys]

	verified, cached atomic.Int64
	refused          tally

	read, failed, changed atomic.Int64
	readAt                atomic.Int64 // time of the last read in Unix nanoseconds; 0: never

	wanted  chan struct{} // requests a read because of an unknown key
	stop    context.CancelFunc
	looking sync.WaitGroup

	loop   follow.Loop
	digest [sha256.Size]byte // of the active key set; used by the loop only
}

// New reads the key set and keeps it up to date until the Verifier is closed.
//
// A file that cannot be read or has no usable key is an error. An unreachable URL is not an error, because the
// issuer may be down at startup. The Verifier then has no keys, logs the error to [Config.Logger], rejects every
// token and retries. ctx bounds only the first read.
func New(ctx context.Context, config Config) (*Verifier, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	options := []jwt.ParserOption{
		jwt.WithValidMethods(config.Algorithms), jwt.WithExpirationRequired(), jwt.WithLeeway(config.Leeway),
		jwt.WithJSONNumber(), jwt.WithStrictDecoding(),
	}
	if config.Issuer != "" {
		options = append(options, jwt.WithIssuer(config.Issuer))
	}
	if len(config.Audience) > 0 {
		options = append(options, jwt.WithAudience(config.Audience...))
	}
	v := &Verifier{config: config, parser: jwt.NewParser(options...), source: newSource(config), wanted: make(chan struct{}, 1)}
	v.refused.log = config.Logger
	v.keys.Store(noKeys())
	if err := v.start(ctx); err != nil {
		return nil, err
	}
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	v.stop = stop
	v.looking.Go(func() { v.loop.Run(following) })
	return v, nil
}

// Close stops updating the key set. Later verifications use the last keys.
func (v *Verifier) Close() {
	v.stop()
	v.looking.Wait()
}

// Attribute returns the claim for a jwt: attribute from r's bearer token if the token is valid. Other attributes
// are missing. It fits the Attribute field of httplimit.Config and httpapi.Gateway.
func (v *Verifier) Attribute(r *http.Request, a policy.Attribute) (value string, ok bool) {
	if a.Source != policy.SourceJWT {
		return "", false
	}
	token, several := httpfacts.BearerToken(r)
	switch {
	case several:
		v.refused.count(ReasonSeveralHeaders, time.Now())
		return "", false
	case token == "":
		return "", false
	case len(token) > v.config.MaxTokenBytes:
		v.refused.count(ReasonOversized, time.Now())
		return "", false
	}
	value, ok = v.claims(token)[a.Name]
	return value, ok
}

func (v *Verifier) claims(token string) map[string]string {
	keys, now, d := v.keys.Load(), time.Now(), digestOf(token)
	if claims, ok := keys.remembered.claims(d, now); ok {
		v.cached.Add(1)
		return claims
	}
	if keys.refused.has(d, now) {
		return nil
	}
	verdict, reason := v.verify(keys, token, now)
	if reason != "" {
		keys.refused.add(d, now)
		v.refused.count(reason, now)
		if reason == ReasonUnknownKey {
			v.requestRead()
		}
		return nil
	}
	v.verified.Add(1)
	keys.remembered.remember(d, verdict, now)
	return verdict.claims
}

func (v *Verifier) verify(keys *keys, token string, now time.Time) (verdict, Reason) {
	parts := strings.SplitN(token, ".", 4)
	if len(parts) != 3 || strings.ContainsAny(token, "\r\n") { // an encrypted token has five parts; decoders skip line ends
		return verdict{}, ReasonMalformed
	}
	header, ok := httpfacts.ReadHeader(parts[0])
	if !ok {
		return verdict{}, ReasonMalformed
	}
	claims, ok := httpfacts.ReadClaims(parts[1])
	if !ok {
		return verdict{}, ReasonMalformed
	}
	if !slices.Contains(v.config.Algorithms, header["alg"]) {
		return verdict{}, ReasonBadAlgorithm
	}
	exp, ok := instant(claims["exp"])
	if !ok {
		return verdict{}, ReasonNoExpiry
	}
	if nbf, there := claims["nbf"]; there {
		if _, ok := instant(nbf); !ok {
			return verdict{}, ReasonMalformed
		}
	}
	if _, err := v.parser.Parse(token, keys.find); err != nil {
		reason := reasonOf(err)
		if reason == ReasonMalformed && isMissing(err) { // exp was checked above
			reason = ReasonBadAudience
			if v.config.Issuer != "" && claims["iss"] == "" {
				reason = ReasonBadIssuer
			}
		}
		return verdict{}, reason
	}
	until := now.Add(memoryTime)
	if end := exp.Add(v.config.Leeway); end.Before(until) {
		until = end
	}
	return verdict{claims, until}, ""
}

// lastSecond is the end of the year 9999. Later times exceed the range of some libraries.
const lastSecond = 253402300799

func instant(text string) (time.Time, bool) {
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds >= 0 && seconds <= lastSecond) {
		return time.Time{}, false
	}
	whole := int64(seconds)
	return time.Unix(whole, int64((seconds-float64(whole))*1e9)), true
}
