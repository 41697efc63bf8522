// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/rand"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/cmd/internal/buildinfo"
	"github.com/metehq/mete/cmd/internal/bundle"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/guard"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/monitor"
	"github.com/metehq/mete/policyyaml"
)

// boardPath is where the dashboard is at the admin address.
const boardPath = "/dashboard/"

// A board is the source of the monitor.
type board struct {
	*Server
	instance string
}

// live returns what the API shows of the server at work. It starts the monitor.
func (s *Server) live() (l httpapi.Live, err error) {
	s.monitor, err = monitor.New(board{s, rand.Text()}, s.limiter.Policy)
	return httpapi.Live{
		Monitor: s.monitor, Watches: &s.watches, Violations: s.trail.found(), Name: callerName, SignIn: s.signIn(), Try: s.try(),
	}, err
}

// signIn says where a token comes from.
func (s *Server) signIn() string {
	if file := s.TokenFile(); file != "" {
		return "The server made a token when it started. On its machine, cat " + file + " shows it."
	}
	return "Tokens are in the server's settings: admin_tokens."
}

// Totals implements [monitor.Source].
func (b board) Totals() monitor.Totals { return b.metrics.Totals() }

// State implements [monitor.Source].
func (b board) State() api.ServerState {
	s := api.ServerState{
		Instance: b.instance, Version: buildinfo.Read().Version, Started: b.started, Ready: !b.ending.Load(), Ending: b.ending.Load(),
		Policy: b.policyState(), Store: b.storeState(), Overrides: map[string]int{},
	}
	for action, n := range b.overrides.Count() {
		s.Overrides[string(action)] = n
	}
	return s
}

func (b board) policyState() api.PolicyState {
	r := b.reloads.stats(b.started)()
	p := api.PolicyState{
		Source: exampleName + ", built in", Loaded: &r.At,
		Reloads: r.Applied, Refused: r.Failed, Failing: r.Failing, Bundle: b.bundleState(),
	}
	switch {
	case storeurl.IsPostgres(b.config.Policy):
		p.Source = storeurl.Shown(b.config.Policy)
	case bundle.IsURL(b.config.Policy):
		p.Source = bundle.ShownSetting(b.config.Policy)
	case b.config.Policy != "":
		p.Source = b.config.Policy
	}
	if f := b.reloads.failure.Load(); f != nil && r.Failing {
		p.Failed, p.Errors = &f.at, f.mistakes
	}
	return p
}

// storeWords say what becomes of requests where the breaker is not closed.
const (
	downWords = "The store does not answer and is not asked. Each rule says what happens then: on_store_error."
	halfWords = "The store is tried again after it did not answer."
	fullWords = "The store is full: buckets that are not full share one. Raise max_keys."
)

func (b board) storeState() api.StoreState {
	s := api.StoreState{Kind: "memory", Address: storeurl.Shown(b.config.Store), State: "ok", Breaker: "none"}
	if m := b.store.memory; m != nil {
		stats := m.Stats()
		keys, nodes := int64(stats.Keys), 1
		s.Buckets, s.Nodes = &keys, &nodes
		if b.lately.isFull() {
			s.State, s.Detail = "degraded", fullWords
		}
		return s
	}
	r := b.store.remote
	s.Kind = "redis"
	if storeurl.IsPostgres(b.config.Store) {
		s.Kind = "postgres"
	}
	nodes := r.node.Nodes()
	state := r.Store.Stats().State
	s.Nodes, s.Breaker, s.Since = &nodes, string(state), b.lately.since()
	switch state {
	case guard.Open:
		s.State, s.Detail = "down", downWords
	case guard.HalfOpen:
		s.State, s.Detail = "degraded", halfWords
	}
	return s
}

// A reloadFailure is why a policy was not put in force.
type reloadFailure struct {
	at       time.Time
	mistakes []string
}

// failureOf says what is wrong in lines, as the log does.
func failureOf(err error) *reloadFailure {
	f := &reloadFailure{at: time.Now().UTC()}
	mistakes, ok := errors.AsType[policyyaml.Errors](err)
	if !ok {
		f.mistakes = strings.Split(err.Error(), "\n")
		return f
	}
	for _, m := range mistakes[:min(len(mistakes), maxLoggedMistakes)] {
		m.Value = loggable(m.Path, m.Value)
		f.mistakes = append(f.mistakes, m.String())
	}
	return f
}

// lately is what happened to the store, and when. The zero one is that nothing did.
type lately struct{ outage, full atomic.Int64 } // in Unix nanoseconds

// fullFor is how long a store that was full is said to be.
const fullFor = 10 * time.Second

func (l *lately) isFull() bool {
	at := l.full.Load()
	return at != 0 && time.Since(time.Unix(0, at)) < fullFor
}

// since is when the last outage began or, once the store answers again, ended; nil for
// never.
func (l *lately) since() *time.Time {
	at := l.outage.Load()
	if at == 0 {
		return nil
	}
	t := time.Unix(0, at).UTC()
	return &t
}
