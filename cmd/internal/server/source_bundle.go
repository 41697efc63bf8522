// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/bundle"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/cmd/internal/policysign"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml"
)

// A bundleSource loads a signed policy from an https:// address.
type bundleSource struct {
	config   bundle.Config
	keyFiles []string
	bundle   *bundle.Follower // nil until loaded
}

func newBundleSource(c config.Config, opts policy.Options, log *slog.Logger, tell func(error)) *bundleSource {
	s := &bundleSource{keyFiles: c.PolicyKeys, config: bundle.Config{
		URL: c.PolicyBundle, CAFile: c.PolicyCA, StateDir: c.StateDirectory, Interval: c.ReloadInterval, Options: opts, Log: log,
	}}
	s.config.Tell = func(err error) {
		if mistakes, broken := errors.AsType[policyyaml.Errors](err); broken {
			logPolicyErrors(log, mistakes)
		}
		tell(err)
	}
	return s
}

func (s *bundleSource) name() string { return bundle.Shown(s.config.URL) }

func (s *bundleSource) load(ctx context.Context) (m *policy.Matcher, err error) {
	if err := s.readKeys(); err != nil {
		return nil, err
	}
	if s.bundle, err = bundle.New(s.config); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	if m, err = s.bundle.Load(ctx); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return m, nil
}

// readKeys loads the public keys for the signatures of bundles.
func (s *bundleSource) readKeys() (err error) {
	if s.config.Keys, err = policysign.ReadKeys(s.keyFiles...); err != nil {
		return fmt.Errorf("policy key: %w", err)
	}
	return nil
}

func (s *bundleSource) follower(apply func(*policy.Matcher) error) follower {
	return &bundleFollower{bundle: s.bundle, apply: apply, asked: make(chan bundle.Request)}
}

func (s *bundleSource) close() {}

// state returns the bundle's state for /readyz and the dashboard.
func (s *bundleSource) state() *api.Bundle {
	b := s.bundle.Status()
	age := min(max(time.Since(b.Confirmed), 0), bucket.LongestWait)
	return &api.Bundle{Version: b.Version, Digest: b.Digest, Age: api.Seconds(age.Truncate(time.Millisecond)), FromDisk: b.FromDisk}
}

// bundleOf returns the state of a source's bundle, or nil for other sources.
func bundleOf(s source) *api.Bundle {
	if b, ok := s.(*bundleSource); ok {
		return b.state()
	}
	return nil
}

func (a *assembly) addBundle(s source) {
	if b, ok := s.(*bundleSource); ok {
		a.metrics.Add(metrics.Bundle(b.bundle.Status))
	}
}

type bundleFollower struct {
	bundle *bundle.Follower
	apply  func(*policy.Matcher) error
	asked  chan bundle.Request
}

func (f *bundleFollower) run(ctx context.Context) { f.bundle.Follow(ctx, f.apply, f.asked) }

func (f *bundleFollower) reload(ctx context.Context) error {
	done := make(chan error, 1)
	select {
	case f.asked <- bundle.Request{Done: done}:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
