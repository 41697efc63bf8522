// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/calendars"
)

// mixedCalls is the number of calls that skip the plain program after the plain program failed. It fails at a row
// with several limit versions, or with another version than the charge. While a policy is deployed, skipping it
// saves a second round trip for most calls.
const mixedCalls = 8

// run makes one call and answers the asks. If Redis cannot run them together, each ask gets a call of its own.
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
		case !alone && !a.retryAlone:
		case gone != nil: // not sent
			a.Err = &mete.StoreError{Spent: mete.NotSpent, Err: gone}
		default:
			gone = s.runAlone(p, a, timeout)
		}
		a.retryAlone = false
	}
	return took
}

// runAlone calls Redis only for a, one of p's asks. It returns an error if more calls would fail too.
func (s *Store) runAlone(p *program, a *ask, timeout time.Duration) (gone error) {
	var one program
	one.reset(p.prefix, p.now)
	one.add(a)
	a.retryAlone = false
	_, err := s.call(&one, timeout)
	switch {
	case err != nil:
		if a.Err = err; mete.Spent(err) == mete.MaybeSpent {
			return errors.Unwrap(err)
		}
	case a.retryAlone:
		a.Err = newAnswerError("unknown key in the error", "!")
	}
	return nil
}

func (s *Store) call(p *program, timeout time.Duration) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	start := time.Now()
	if p.plain && s.mixed.Load() > 0 {
		s.mixed.Add(-1)
		p.plain = false
	}
	p.windows.Reset(p.expectedTime())
	keys, args := p.encode()
	text, err := s.script.Exec(ctx, s.client, keys, args).ToString()
	if err == nil && text == "?" && p.plain { // a row is not plain
		s.mixed.Store(mixedCalls)
		p.plain = false
		keys, args = p.encode()
		text, err = s.script.Exec(ctx, s.client, keys, args).ToString()
	}
	for calls := 1; err == nil && strings.HasPrefix(text, needsWindows); calls++ {
		if err := p.learnWindows(text); err != nil {
			return time.Since(start), err
		}
		if calls == calendars.MaxCalls {
			return time.Since(start), newNotSpent(calendars.ErrClocks)
		}
		keys, args = p.encode()
		text, err = s.script.Exec(ctx, s.client, keys, args).ToString()
	}
	took = time.Since(start)
	s.calls.Add(len(p.asks), took, err)
	switch {
	case err != nil:
		return took, newStoreError(err)
	case strings.HasPrefix(text, "!"):
		p.failCorrupt(text[1:])
	default:
		p.readAnswers(text)
	}
	return took, nil
}
