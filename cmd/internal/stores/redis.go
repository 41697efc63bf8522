// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/rueidis"

	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
)

var redis = Kind{Scheme: storeurl.Redis, Shared: true, Open: openRedis}

const scanCount = 1000

type redisStore struct {
	*redisstore.Store
	connection
}

// openRedis opens a store in Redis. Unless options make it private, the process joins the servers that share it.
func openRedis(ctx context.Context, u *storeurl.URL, o Options) (Store, error) {
	if o.joins() {
		node, err := redisstore.Connect(ctx, u.Redis.Options, u.Redis.Config)
		if err != nil {
			return nil, err
		}
		return &redisStore{node.Store, connection{nodes: node.Nodes, close: node.Close}}, nil
	}
	options, config := u.Redis.Options, u.Redis.Config
	config.Now = o.Now
	if o.makePrivate(&config.Prefix, &config.Timeout); o.Private {
		options.ConnWriteTimeout = 2 * config.Timeout
	}
	client, err := redisstore.Dial(ctx, options)
	if err != nil {
		return nil, err
	}
	s, err := redisstore.New(client, config)
	if err != nil {
		client.Close()
		return nil, err
	}
	return &redisStore{s, connection{oneNode, func(ctx context.Context) error {
		s.Close()
		return cleanRedis(ctx, client, config.Prefix)
	}, func() error {
		defer client.Close()
		return s.Close()
	}}}, nil
}

func (s *redisStore) Documents() store.Documents { return s.Store }
func (s *redisStore) Metrics() metrics.Source    { return metrics.Redis(s.Store.Stats) }
func (s *redisStore) Close() error               { return s.close() }

// cleanRedis removes the keys with a prefix from all Redis nodes.
func cleanRedis(ctx context.Context, client rueidis.Client, prefix string) error {
	for _, node := range client.Nodes() {
		if err := cleanServer(ctx, client, node, prefix); err != nil {
			return fmt.Errorf("keys with the prefix %s remain in Redis for an hour: %w", prefix, err)
		}
	}
	return nil
}

func cleanServer(ctx context.Context, client, node rueidis.Client, prefix string) error {
	pattern := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(prefix) + "*"
	for cursor := uint64(0); ; {
		page, err := node.Do(ctx, node.B().Scan().Cursor(cursor).Match(pattern).Count(scanCount).Build()).AsScanEntry()
		if err != nil {
			return err
		}
		commands := make(rueidis.Commands, 0, len(page.Elements))
		for _, key := range page.Elements {
			commands = append(commands, client.B().Unlink().Key(key).Build())
		}
		for _, result := range client.DoMulti(ctx, commands...) {
			if err := result.Error(); err != nil {
				return err
			}
		}
		if cursor = page.Cursor; cursor == 0 {
			return nil
		}
	}
}
