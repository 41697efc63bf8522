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

	"github.com/metehq/mete/cmd/internal/certificates"
	"github.com/metehq/mete/cmd/internal/clientfacts"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml"
)

// A source loads the policy from a file, a database or an address.
type source interface {
	// name returns the location for output, without a password.
	name() string

	load(ctx context.Context) (*policy.Matcher, error)

	// follower returns the follower that activates later versions by calling apply. apply returns an error if the
	// policy does not fit the server.
	follower(apply func(*policy.Matcher) error) follower

	close()
}

// A follower activates each new version of the policy. It logs invalid versions and never activates them.
type follower interface {
	run(ctx context.Context)

	// reload reads the policy again even if it has not changed. It is safe to call while run is active.
	reload(ctx context.Context) error
}

// newSource returns the source from the settings. The source reports the result of each change to tell.
func newSource(c config.Config, opts policy.Options, log *slog.Logger, tell func(error)) source {
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

// newFollowerComponent returns the component that follows the policy and serves reload requests.
func newFollowerComponent(f follower, r *reloads) component {
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

type example struct {
	opts policy.Options
	log  *slog.Logger
}

// examplePolicy is the default policy.
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
	e.log.Info("nothing to reload, the built-in example policy is active")
	return nil
}

func (e example) close() {}

const maxLoggedErrors = 100

// loggable returns the part of a policy value that the log may contain. Match values can be keys or addresses, so
// the log omits them; 'mete check' prints them.
func loggable(path, value string) string {
	for _, part := range []string{"match", "/key", "kill_switches", "/tests/", "selector"} {
		if strings.Contains(path, part) {
			return ""
		}
	}
	return value
}

// A reloadRequest asks a source to reload the policy. If done is not nil, it receives the result and must be
// buffered.
type reloadRequest struct{ done chan<- error }

func (r reloadRequest) end(err error) {
	if r.done != nil {
		r.done <- err
	}
}

// reloads queues reload requests and counts their results.
type reloads struct {
	started  time.Time // start of the server
	requests chan reloadRequest
	ended    chan struct{} // closed when the server stops following the policy

	good, bad atomic.Uint64
	last      atomic.Int64                  // Unix nanoseconds of the last success; 0 for none
	failing   atomic.Bool                   // whether the last reload failed
	failure   atomic.Pointer[reloadFailure] // the last failure
}

func newReloads() *reloads {
	return &reloads{started: time.Now(), requests: make(chan reloadRequest, 1), ended: make(chan struct{})}
}

// Reload requests a reload of the policy without waiting for it. It is safe for concurrent use.
func (s *Server) Reload() {
	select {
	case s.reloads.requests <- reloadRequest{}:
	default: // one is due already
	}
}

// reloadNow reloads the policy and returns the result. If it returns an error, the old policy stays active.
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

// errReloadEnded is the error of a reload during shutdown. The new policy may be active or not.
var errReloadEnded = fmt.Errorf("the server is stopping: %w", context.Canceled)

func (r *reloads) count(err error) {
	r.failing.Store(err != nil)
	if err != nil {
		r.failure.Store(newReloadFailure(err))
		r.bad.Add(1)
		return
	}
	r.last.Store(time.Now().UnixNano())
	r.good.Add(1)
}

// stats returns the counts. The start of the server counts as the first activation.
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

// newReloadFailure converts the errors of a policy to lines, as in the log.
func newReloadFailure(err error) *reloadFailure {
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

// Check validates the files that the settings name without opening the store or the addresses. It returns the same
// errors as [New]. The policy is nil if it is in a database.
func Check(ctx context.Context, c config.Config) (*policy.Matcher, error) {
	for _, t := range []struct {
		setting string
		files   config.TLS
	}{{"tls", c.TLS}, {"admin_tls", c.AdminTLS}, {"grpc_tls", c.GRPCTLS}, {"resp_tls", c.RESPTLS}} {
		if !t.files.On() {
			continue
		}
		if _, err := certificates.Open(certificates.Files(t.files), nil, slog.New(slog.DiscardHandler)); err != nil {
			return nil, fmt.Errorf("%s: %w", t.setting, err)
		}
	}
	facts, closeFacts, err := clientfacts.Open(c.GeoIP, nil, settingName)
	if err != nil {
		return nil, err
	}
	defer closeFacts()
	source := newSource(c, policy.Options{Facts: facts}, nil, nil)
	switch s := source.(type) {
	case *databaseSource: // the database is not asked
		return nil, nil
	case *bundleSource: // nor is the server of the bundle
		return nil, s.readKeys()
	}
	return source.load(ctx)
}
