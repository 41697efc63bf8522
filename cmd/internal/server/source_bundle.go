// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/bundle"
	"github.com/metehq/mete/cmd/internal/policysign"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml"
)

// A bundleSource is a signed policy at an https:// address.
type bundleSource struct {
	config   bundle.Config
	keyFiles []string
	follower *bundle.Follower // nil until loaded
}

// newBundleSource returns the source of a policy setting that is an address.
func (s *Server) newBundleSource(opts policy.Options) *bundleSource {
	c := &s.config
	return &bundleSource{keyFiles: c.PolicyKeys, config: bundle.Config{
		URL: c.Policy, CAFile: c.PolicyCA, StateDir: c.StateDirectory, Interval: c.ReloadInterval, Options: opts,
		Apply: s.apply, Log: s.log,
		Tell: func(err error) {
			if _, mistakes := errors.AsType[policyyaml.Errors](err); mistakes {
				logMistakes(s.log, bundle.ShownSetting(c.Policy), err)
			}
			s.reloads.count(err)
		},
	}}
}

// load implements [source].
func (b *bundleSource) load(ctx context.Context) (m *policy.Matcher, err error) {
	if b.config.Keys, err = policysign.ReadKeys(b.keyFiles...); err != nil {
		return nil, fmt.Errorf("policy key: %w", err)
	}
	if b.follower, err = bundle.New(b.config); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	if m, err = b.follower.Load(ctx); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return m, nil
}

// follow implements [source].
func (b *bundleSource) follow(ctx context.Context, reload <-chan reloading) {
	asked := make(chan bundle.Request)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case r := <-reload:
				select {
				case asked <- bundle.Request{Done: r.done}:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	b.follower.Follow(ctx, asked)
}

// close implements [source].
func (b *bundleSource) close() {}

// bundleStatus returns the status of the bundle, nil if the policy has another source.
func (s *Server) bundleStatus() *bundle.Status {
	b, ok := s.source.(*bundleSource)
	if !ok || b.follower == nil {
		return nil
	}
	status := b.follower.Status()
	return &status
}

// bundleState returns what /readyz and the dashboard show of the bundle, nil for none.
func (s *Server) bundleState() *api.Bundle {
	b := s.bundleStatus()
	if b == nil {
		return nil
	}
	age := min(max(time.Since(b.Confirmed), 0), bucket.Longest)
	return &api.Bundle{Version: b.Version, Digest: b.Digest, Age: api.Seconds(age.Truncate(time.Millisecond)), FromDisk: b.FromDisk}
}
