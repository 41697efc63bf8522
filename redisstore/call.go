// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/metehq/mete"
)

// mixedCalls is how many calls after one that met a row of several versions of a
// limit, or of another than the asking one, expect more of them. While a policy is
// deployed that saves most calls a second round trip.
const mixedCalls = 8

// run makes one call, and answers the asks. Where Redis cannot take them
// together they go one by one.
func (s *Store) run(p *program, timeout time.Duration) time.Duration {
	took, err := s.call(p, timeout)
	alone := false
	switch {
	case err == nil:
	case len(p.asks) > 1 && (isTryAgain(err) || isWrongType(err)):
		alone = true
	default:
		p.fail(err)
	}
	var gone error
	for _, a := range p.asks {
		switch {
		case !alone && !a.again:
		case gone != nil: // it was not asked
			a.Err = &mete.StoreError{Spent: mete.NotSpent, Err: gone}
		default:
			gone = s.runAlone(p, a, timeout)
		}
		a.again = false
	}
	return took
}

// runAlone makes a call for a, which is one of p's. It returns an error where
// there is no use in making others.
func (s *Store) runAlone(p *program, a *ask, timeout time.Duration) (gone error) {
	var one program
	one.reset(p.prefix, p.now)
	one.add(a)
	a.again = false
	_, err := s.call(&one, timeout)
	switch {
	case err != nil:
		if a.Err = err; mete.Spent(err) == mete.MaybeSpent {
			return errors.Unwrap(err)
		}
	case a.again:
		a.Err = errAnswer("blames no key that there is", "!")
	}
	return nil
}

// call makes the call that p is.
func (s *Store) call(p *program, timeout time.Duration) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	start := time.Now()
	if p.plain && s.mixed.Load() > 0 {
		s.mixed.Add(-1)
		p.plain = false
	}
	keys, args := p.encode()
	text, err := s.script.Exec(ctx, s.client, keys, args).ToString()
	if err == nil && text == "?" && p.plain { // a row is not that plain
		s.mixed.Store(mixedCalls)
		p.plain = false
		keys, args = p.encode()
		text, err = s.script.Exec(ctx, s.client, keys, args).ToString()
	}
	took = time.Since(start)
	s.calls.Add(len(p.asks), took, err)
	switch {
	case err != nil:
		return took, storeError(err)
	case strings.HasPrefix(text, "!"):
		p.spoiled(text[1:])
	default:
		p.answer(text)
	}
	return took, nil
}
