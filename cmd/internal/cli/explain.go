// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/stores"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

const explainAbout = `
Explains the decision about a request. It shows the rules that apply, and the
reasons why others do not. It shows the buckets before and after, the limit that
denies the request, and the time when it passes. It spends nothing.

  mete explain policy.yaml 'GET /v1/x?tenant=a' ip=192.0.2.1 \
      header:x-api-key=k1 jwt:plan=pro

A request is a method and a path, or a URL, which also has the host and the
attributes query:NAME. The command normalizes paths and hosts as the servers do.
Attributes have the names of policy files. ip is short for ip:address, and
cost=3 replaces the cost in the policy.

--curl takes a curl command line in place of 'METHOD PATH', as browsers copy it
("Copy as cURL"). The command reads it and does not run it. Attributes that you
add override it. Always add the address, which no curl command line contains:

  mete explain policy.yaml ip=192.0.2.1 \
      --curl "curl https://example.com/v1/x -H 'X-Api-Key: k1'"

With a policy, the rules are in the file, and all buckets are full.
--store shows buckets as they are in memory:?file=PATH, redis://HOST or
postgres://HOST/DATABASE. To find keys that hold hashes of secrets, set
METE_HASH_KEY to the hash_key of the servers. Without a policy, a running server
explains the request by its own policy and buckets, at its admin address.

Rules are marked by their result:
  ✓  the rule allows the request
  ✗  the rule denies the request
  ~  the rule is in shadow
  -  the rule does not take part

Exit codes:
  0  the request is allowed
  1  the request is denied, or the policy is invalid
  2  wrong usage
  3  the server or the store does not answer
  4  the server rejects the request
`

type explainCommand struct {
	std    Streams
	policy string // a file name, "-" for standard input, "" to use the server
	connection
	store   *storeurl.URL  // nil: all buckets are full
	at      bucket.Instant // 0: now
	format  string
	request typedRequest
}

func newExplainCommand(std Streams) *cobra.Command {
	c := &explainCommand{std: std}
	cmd := &cobra.Command{
		Use: "explain [flags] [POLICY] ['METHOD PATH'] [NAME=VALUE ...]", Short: "Explain the decision about a request, rule by rule", Long: explainAbout,
		ValidArgsFunction: completeExplain,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.check(cmd, args); err != nil {
				return err
			}
			return c.run(cmd.Context())
		},
	}
	addPolicy(cmd, &c.policy, "the policy `FILE` in JSON or YAML, - for standard input, or postgres://HOST/DATABASE for the rules there")
	cmd.Flags().Func("store", "show the buckets in the store at `URL`: memory:?file=PATH, redis://HOST or postgres://HOST/DATABASE (default: all are full)", func(s string) (err error) {
		c.store, err = storeurl.Parse(s)
		return err
	})
	cmd.Flags().Func("at", "explain the decision at `INSTANT`, such as 2026-11-21T08:00:00Z, if no other requests arrive before", func(s string) error {
		t, err := time.Parse(time.RFC3339, s)
		if c.at = bucket.At(t); err != nil || c.at <= 0 {
			return errors.New("write it as 2026-11-21T08:00:00Z")
		}
		return nil
	})
	addFormat(cmd, &c.format, "text", "json")
	cmd.Flags().Func("max-wait", "explain a request that accepts a wait of `DURATION`, such as 2s", func(s string) (err error) {
		c.request.MaxWait, err = bucket.ParseDuration(s)
		return trimPackage(err)
	})
	cmd.Flags().StringVar(&c.request.curl, "curl", "", "explain the request of the curl `COMMAND` line, - for standard input")
	cmd.Flags().AddFlagSet(c.flags(adminURL()))
	return cmd
}

func (c *explainCommand) run(ctx context.Context) error {
	var e api.Explanation
	var err error
	if c.policy == "" {
		e, err = c.ask(ctx)
	} else {
		e, err = c.decide(ctx)
	}
	switch {
	case err == nil:
	case isPolicyError(err):
		return failBare(exitNo, err)
	case errors.Is(err, store.ErrUnavailable):
		return fail(exitUnreachable, err)
	case c.policy == "":
		return failClient(c.server, err)
	default:
		return fail(exitUsage, trimPackage(err))
	}
	if err := c.print(&e); err != nil {
		return err
	}
	if !e.Decision.Allowed {
		return exitWith(exitNo)
	}
	return nil
}

func (c *explainCommand) check(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && namesPolicy(args[0]) {
		args = policyArgument(&c.policy, args)
	}
	if err := c.readCurl(); err != nil {
		return usageError("%w", err)
	}
	if err := c.request.read(args); err != nil {
		return usageError("%w", trimPackage(err))
	}
	switch {
	case c.policy != "" && cmd.Flags().Changed("server"):
		return usageError("--policy and --server exclude each other: a server uses its own policy")
	case c.policy == "" && (c.store != nil || c.at != 0):
		return usageError("--store and --at require --policy: a server uses its own buckets and clock")
	}
	return nil
}

func (c *explainCommand) ask(ctx context.Context) (api.Explanation, error) {
	server, err := c.newClient()
	if err != nil {
		return api.Explanation{}, err
	}
	return server.Explain(ctx, c.request.Request)
}

func (c *explainCommand) now() bucket.Instant { return c.at }

func (c *explainCommand) decide(ctx context.Context) (e api.Explanation, err error) {
	clock := c.now
	if c.at == 0 {
		if c.store == nil { // all parts of the explanation use one instant
			c.at = bucket.At(time.Now())
		} else {
			clock = nil
		}
	}
	m, err := c.readPolicy(ctx)
	if err != nil {
		return e, err
	}
	store, err := c.openStore(ctx, clock)
	if err != nil {
		return e, err
	}
	defer store.close()
	lim, err := mete.New(store, m, mete.Config{Now: clock, Local: store.local})
	if err != nil {
		return e, err
	}
	attrs := policy.Map(c.request.Attributes)
	explained, err := lim.Explain(ctx, mete.Request{Attributes: attrs, Cost: mete.Tokens(c.request.Cost), MaxWait: c.request.MaxWait})
	if err != nil {
		return e, err
	}
	if c.store != nil && os.Getenv(hashKeyVar) == "" {
		if name := hashedAttribute(&explained); name != "" {
			return e, fmt.Errorf("the key of the bucket contains a hash of %s: set %s to the hash_key of the servers, or query a server with --server", name, hashKeyVar)
		}
	}
	return httpapi.ExplanationOf(&explained), nil
}

func (c *explainCommand) readPolicy(ctx context.Context) (*policy.Matcher, error) {
	opts, err := policyOptions()
	if err != nil {
		return nil, err
	}
	if c.at != 0 {
		opts.Now = c.at.Time()
	}
	m, _, err := readContents(ctx, c.std, c.policy, nil, opts)
	return m, err
}

// hashedAttribute returns an attribute that appears as a hash in the key of a bucket of the request, or "".
func hashedAttribute(e *mete.Explanation) string {
	for i := range e.Rules {
		for _, a := range e.Rules[i].Accounts {
			if !a.Asked {
				continue
			}
			if names := findHashed(a.Key, attributeNames(e.Rules[i].Rule.LimitKeys)); len(names) > 0 {
				return names[0]
			}
		}
	}
	return ""
}

func attributeNames(attributes []policy.Attribute) []string {
	names := make([]string, len(attributes))
	for i, a := range attributes {
		names[i] = a.Spelling()
	}
	return names
}

// findHashed returns the limit_keys that appear as hashes in a bucket's key.
func findHashed(key string, limitKeys []string) (names []string) {
	for i, part := range policy.Key(key).Parts() {
		if part.Hashed && i < len(limitKeys) {
			names = append(names, limitKeys[i])
		}
	}
	return names
}

// An explainedStore holds the buckets of an explanation.
type explainedStore struct {
	mete.Store
	local *memstore.Store // for rules with on_store_error: local; all its buckets are full
	close func() error
}

// openStore opens the store of --store for reading, without creating tables.
func (c *explainCommand) openStore(ctx context.Context, now func() bucket.Instant) (s explainedStore, err error) {
	if s.local, err = memstore.New(memstore.Config{Now: now}); err != nil {
		return s, err
	}
	if c.store == nil {
		full, err := memstore.New(memstore.Config{Now: now})
		s.Store, s.close = untimedStore{full}, func() error { return nil }
		return s, err
	}
	opened, _, err := stores.Open(ctx, c.store, stores.Options{Now: now, ReadOnly: true})
	if err != nil {
		return s, err
	}
	s.Store, s.close = untimedStore{opened}, opened.Close
	return s, nil
}
