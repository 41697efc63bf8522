// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	_ "embed"
	"log/slog"
	"strings"
	"sync"

	"github.com/metehq/mete/cmd/internal/bundle"
	"github.com/metehq/mete/cmd/internal/config"
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
		return &databaseSource{url: c.PolicyDatabase, opts: opts, log: log, tell: tell, interval: c.ReloadInterval}
	case bundle.IsURL(c.Policy):
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
