// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml"
)

// A source is the place of the policy.
type source interface {
	// name is the place, for people. It has no password.
	name() string

	// load reads the policy for the first time.
	load(ctx context.Context) (*policy.Matcher, error)

	// follower returns what follows the policy from then on. It activates policies with
	// apply, which returns why one does not fit.
	follower(apply func(*policy.Matcher) error) follower

	// close releases what load opened.
	close()
}

// A follower activates the policy of a source when it changes. A broken policy is logged,
// and never activated.
type follower interface {
	run(ctx context.Context)

	// reload reads the policy again, changed or not. It may be called while run runs.
	reload(ctx context.Context) error
}

// newSource returns the source that the settings name. The source tells the results of
// changes.
func newSource(c config.Config, hashKey []byte, log *slog.Logger, tell func(error)) source {
	opts := policy.Options{HashKey: hashKey}
	switch {
	case c.PolicyDatabase != nil:
		return &databaseSource{shut: func() {}, url: c.PolicyDatabase, opts: opts, log: log, tell: tell, interval: c.ReloadInterval}
	case c.PolicyBundle != nil:
		return newBundleSource(c, opts, log, tell)
	case c.Policy == "":
		return example{opts, log}
	}
	return &fileSource{path: c.Policy, opts: opts, log: log, tell: tell, interval: c.ReloadInterval, keyFiles: c.PolicyKeys}
}

// following returns the component that follows the policy and serves requests to reload it.
func following(f follower, r *reloads) component {
	return background("policy", func(ctx context.Context) {
		defer close(r.ended)
		var running sync.WaitGroup
		defer running.Wait()
		running.Go(func() { f.run(ctx) })
		for {
			select {
			case <-ctx.Done():
				return
			case request := <-r.requests:
				request.end(f.reload(ctx))
			}
		}
	})
}

// An example is the source of the built-in policy.
type example struct {
	opts policy.Options
	log  *slog.Logger
}

// examplePolicy is active if the settings name no policy.
//
//go:embed example.yaml
var examplePolicy []byte

func (e example) name() string { return "example.yaml, built in" }

func (e example) load(context.Context) (*policy.Matcher, error) {
	return policyyaml.Parse("example.yaml", examplePolicy, e.opts)
}

func (e example) follower(func(*policy.Matcher) error) follower { return e }

func (e example) run(ctx context.Context) { <-ctx.Done() }

func (e example) reload(context.Context) error {
	e.log.Info("nothing to reload: the built-in example policy is active")
	return nil
}

func (e example) close() {}

// maxLoggedErrors bounds the log lines about one broken policy.
const maxLoggedErrors = 100

// loggable returns the part of a value in a policy that a log may have. Values that requests
// are matched by can be keys or addresses; 'mete check' shows them.
func loggable(path, value string) string {
	for _, part := range []string{"match", "/key", "kill_switches", "/tests/", "selector"} {
		if strings.Contains(path, part) {
			return ""
		}
	}
	return value
}

// A reloadRequest asks a source to read the policy again. If done is not nil, it gets the
// result, and has room for it.
type reloadRequest struct{ done chan<- error }

func (r reloadRequest) end(err error) {
	if r.done != nil {
		r.done <- err
	}
}

// reloads pass requests to read the policy again, and count the results.
type reloads struct {
	started  time.Time // of the server
	requests chan reloadRequest
	ended    chan struct{} // closed when the policy is no longer followed

	good, bad atomic.Uint64
	last      atomic.Int64                  // time of the last success, in Unix nanoseconds; 0 for none
	failing   atomic.Bool                   // the last one failed
	failure   atomic.Pointer[reloadFailure] // of the last one that failed
}

func newReloads() *reloads {
	return &reloads{started: time.Now(), requests: make(chan reloadRequest, 1), ended: make(chan struct{})}
}

// Reload has the policy read again, changed or not. It does not wait, and may be called from
// any goroutine.
func (s *Server) Reload() {
	select {
	case s.reloads.requests <- reloadRequest{}:
	default: // one is due already
	}
}

// reloadNow has the policy read again, and returns once it is active, or why the old one
// stays.
func (s *Server) reloadNow(ctx context.Context) error {
	if s.ending.Load() {
		return errReloadEnded
	}
	r := s.reloads
	done := make(chan error, 1)
	select {
	case r.requests <- reloadRequest{done}:
	case <-r.ended:
		return errReloadEnded
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-done:
		return err
	case <-r.ended:
		return errReloadEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errReloadEnded is the result of a reload that came too late: it may have happened or not.
var errReloadEnded = fmt.Errorf("the server is ending: %w", context.Canceled)

// count counts the result of a change of the policy.
func (r *reloads) count(err error) {
	r.failing.Store(err != nil)
	if err != nil {
		r.failure.Store(failureOf(err))
		r.bad.Add(1)
		return
	}
	r.last.Store(time.Now().UnixNano())
	r.good.Add(1)
}

// stats are the counts. The first policy became active when the server started.
func (r *reloads) stats() metrics.Reloads {
	m := metrics.Reloads{Applied: r.good.Load(), Failed: r.bad.Load(), Failing: r.failing.Load(), At: r.started}
	if last := r.last.Load(); last != 0 {
		m.At = time.Unix(0, last)
	}
	return m
}

// A reloadFailure is the reason why a policy was not activated.
type reloadFailure struct {
	at       time.Time
	mistakes []string
}

// failureOf returns the errors of a policy in lines, like the log.
func failureOf(err error) *reloadFailure {
	f := &reloadFailure{at: time.Now().UTC()}
	mistakes, ok := errors.AsType[policyyaml.Errors](err)
	if !ok {
		f.mistakes = strings.Split(err.Error(), "\n")
		return f
	}
	for _, m := range mistakes[:min(len(mistakes), maxLoggedErrors)] {
		m.Value = loggable(m.Path, m.Value)
		f.mistakes = append(f.mistakes, m.String())
	}
	return f
}

// Check reads the files that a server with these settings would begin with, and
// opens nothing: neither its store nor its addresses. The policy is nil where it is in
// a database. The errors are the errors of [New].
func Check(ctx context.Context, c config.Config) (*policy.Matcher, error) {
	for _, t := range []struct {
		setting string
		files   config.TLS
	}{{"tls", c.TLS}, {"admin_tls", c.AdminTLS}} {
		if !t.files.On() {
			continue
		}
		if _, err := newCertificates(t.files, slog.New(slog.DiscardHandler)); err != nil {
			return nil, fmt.Errorf("%s: %w", t.setting, err)
		}
	}
	source := newSource(c, nil, nil, nil)
	switch s := source.(type) {
	case *databaseSource: // the database is not asked
		return nil, nil
	case *bundleSource: // nor is the server of the bundle
		return nil, s.readKeys()
	}
	return source.load(ctx)
}
