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
	"github.com/metehq/mete/store"
)

// A databaseSource is a policy that is rows in a PostgreSQL.
type databaseSource struct {
	url      *storeurl.URL
	opts     policy.Options
	log      *slog.Logger
	apply    func(*policy.Matcher) error
	tell     func(error)   // what came of a change
	interval time.Duration // between two looks, where it is long; 0: only when told to

	source   *rules.Source // nil until loaded
	revision int64         // that was loaded at first

	mu       sync.Mutex // held while a policy is put in force: the database and an operator may want it at once
	replaced int        // how often that was, or was tried
	outcome  error      // what came of the last one
}

// load waits for a while for a database that does not answer: it may be starting,
// too.
func (s *databaseSource) load(ctx context.Context) (*policy.Matcher, error) {
	waiting, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	ticker := time.NewTicker(connectInterval)
	defer ticker.Stop()
	var before error
	for complained := false; ; {
		m, err := s.open(waiting)
		if before != nil && waiting.Err() != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			err = before // what it was that did not answer
		}
		before = err
		if err == nil || !errors.Is(err, store.ErrUnavailable) {
			return m, err
		}
		if !complained {
			s.log.Error("the database of the policy does not answer; trying again", "error", err, "database", s.url.String())
		}
		complained = true
		select {
		case <-waiting.Done():
			return nil, err
		case <-ticker.C:
		}
	}
}

// open connects and reads the policy.
func (s *databaseSource) open(ctx context.Context) (m *policy.Matcher, err error) {
	if s.source == nil {
		config := rules.Config{Schema: s.url.Postgres.Config.Schema, Poll: max(s.interval, rules.DefaultPoll), Logger: s.log}
		if s.source, err = rules.Connect(ctx, s.url.Postgres.Options, config); err != nil {
			return nil, fmt.Errorf("policy: %w", err)
		}
	}
	m, s.revision, err = s.source.Load(ctx, s.opts)
	if _, broken := errors.AsType[rules.Errors](err); err != nil && !broken {
		err = fmt.Errorf("policy: %w", err)
	}
	return m, err
}

func (s *databaseSource) close() {
	if s.source != nil {
		s.source.Close()
	}
}

func (s *databaseSource) follow(ctx context.Context, reload <-chan reloading) {
	var watching sync.WaitGroup
	defer watching.Wait()
	if s.interval > 0 {
		watching.Go(func() { s.source.Watch(ctx, s.revision, s.opts, s.replace) })
	}
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-reload:
			r.end(s.reload(ctx))
		}
	}
}

// reload reads the rules for an operator. Where the database tells of a change
// meanwhile, what was read here may be from before it, and does not count; what came
// of the change does.
func (s *databaseSource) reload(ctx context.Context) error {
	s.mu.Lock()
	before := s.replaced
	s.mu.Unlock()
	m, revision, err := s.source.Load(ctx, s.opts)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.replaced == before:
		return s.put(m, revision, err)
	}
	return s.outcome
}

// replace puts a policy in force, or says why not.
func (s *databaseSource) replace(m *policy.Matcher, revision int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(m, revision, err)
}

// put is replace for who holds mu.
func (s *databaseSource) put(m *policy.Matcher, revision int64, err error) error {
	s.replaced++
	if err == nil {
		err = s.apply(m)
	}
	s.outcome = err
	s.tell(err)
	switch mistakes, broken := errors.AsType[rules.Errors](err); {
	case broken:
		s.log.Error("policy is broken; the old one stays in force", "database", s.url.String(), "revision", revision, "mistakes", len(mistakes))
		for _, m := range mistakes[:min(len(mistakes), maxLoggedMistakes)] {
			m.Value = loggable(m.Path, m.Value)
			s.log.Error("policy mistake", "error", m.Error())
		}
	case err != nil:
		s.log.Error("cannot read the policy; the old one stays in force", "error", err)
	default:
		s.log.Info("policy reloaded", "database", s.url.String(), "rules", len(m.Rules()), "revision", revision)
	}
	return err
}
