// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/policy"
)

// A databaseSource loads a policy from rows in PostgreSQL.
type databaseSource struct {
	url      *storeurl.URL
	opts     policy.Options
	log      *slog.Logger
	tell     func(error)   // receives the result of each change
	interval time.Duration // shortest polling interval; 0: only on request

	source   *rules.Source // nil until loaded
	shut     func()        // closes source
	revision int64         // of the policy that load returned
}

func (s *databaseSource) name() string { return s.url.String() }

// load retries for a while if the database does not answer, because both may be starting together.
func (s *databaseSource) load(ctx context.Context) (m *policy.Matcher, err error) {
	failed := limitErrors(s.log, "database of the policy unreachable, trying again", "database", s.url.String())
	err = retryUnavailable(ctx, failed, func(ctx context.Context) (err error) {
		m, err = s.open(ctx)
		return err
	})
	return m, err
}

func (s *databaseSource) open(ctx context.Context) (m *policy.Matcher, err error) {
	if s.source == nil {
		config := rules.Config{Schema: s.url.Postgres.Config.Schema, Poll: max(s.interval, rules.DefaultPoll), Logger: s.log}
		if s.source, err = rules.Connect(ctx, s.url.Postgres.Options, config); err != nil {
			return nil, fmt.Errorf("policy: %w", err)
		}
		s.shut = s.source.Close
	}
	m, s.revision, err = s.source.Load(ctx, s.opts)
	if _, broken := errors.AsType[rules.Errors](err); err != nil && !broken {
		err = fmt.Errorf("policy: %w", err)
	}
	return m, err
}

func (s *databaseSource) close() {
	s.shut()
}

func (s *databaseSource) follower(apply func(*policy.Matcher) error) follower {
	return &databaseFollower{databaseSource: s, apply: apply}
}

type databaseFollower struct {
	*databaseSource
	apply func(*policy.Matcher) error

	mu       sync.Mutex // serializes activations by the database and by operators
	replaced int        // number of attempts
	outcome  error      // error of the last attempt
}

func (f *databaseFollower) run(ctx context.Context) {
	if f.interval > 0 {
		f.source.Watch(ctx, f.revision, f.opts, f.replace)
	}
	<-ctx.Done()
}

// reload reads the rules for an operator. If the database announces a change at the same time, that change may be
// newer, and its result is returned.
func (f *databaseFollower) reload(ctx context.Context) error {
	f.mu.Lock()
	before := f.replaced
	f.mu.Unlock()
	m, revision, err := f.source.Load(ctx, f.opts)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case f.replaced == before:
		return f.replaceLocked(m, revision, err)
	}
	return f.outcome
}

// replace activates a policy, or logs why it cannot.
func (f *databaseFollower) replace(m *policy.Matcher, revision int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replaceLocked(m, revision, err)
}

func (f *databaseFollower) replaceLocked(m *policy.Matcher, revision int64, err error) error {
	f.replaced++
	if err == nil {
		err = f.apply(m)
	}
	f.outcome = err
	f.tell(err)
	log := f.log.With("database", f.url.String(), "revision", revision)
	switch mistakes, broken := errors.AsType[rules.Errors](err); {
	case broken:
		log.Error("policy invalid, old policy stays active", "errors", len(mistakes))
		for _, m := range mistakes[:min(len(mistakes), maxLoggedErrors)] {
			m.Value = loggable(m.Path, m.Value)
			f.log.Error("policy error", "err", m.Error())
		}
	case err != nil:
		f.log.Error("cannot read policy, old policy stays active", "database", f.url.String(), "err", err)
	default:
		log.Info("policy reloaded", "rules", len(m.Rules()))
	}
	return err
}
