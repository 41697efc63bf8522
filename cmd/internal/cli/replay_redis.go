// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/redisstore"
	"github.com/redis/rueidis"
)

// scanCount is how many keys one SCAN looks at.
const scanCount = 1000

// dialRedis returns a store over a client of its own, which the caller closes.
func dialRedis(ctx context.Context, options rueidis.ClientOption, config redisstore.Config) (rueidis.Client, *redisstore.Store, error) {
	client, err := redisstore.Dial(ctx, options)
	if err != nil {
		return nil, nil, err
	}
	store, err := redisstore.New(client, config)
	if err != nil {
		client.Close()
		return nil, nil, err
	}
	return client, store, nil
}

// openRedis returns a store in the Redis that a URL names, under a prefix of its own.
func openRedis(ctx context.Context, u *storeurl.URL, now func() bucket.Instant) (s replayStore, err error) {
	options, config := u.Redis.Options, u.Redis.Config
	if config.Timeout == 0 {
		config.Timeout = replayCall
	}
	options.ConnWriteTimeout = 2 * config.Timeout
	config.Now, config.Prefix = now, ownPrefix(config.Prefix)
	client, store, err := dialRedis(ctx, options, config)
	if err != nil {
		return s, err
	}
	s.Store = store
	s.end = func(ctx context.Context) error {
		defer client.Close()
		store.Close()
		for _, node := range client.Nodes() {
			if err := cleanRedis(ctx, client, node, config.Prefix); err != nil {
				return fmt.Errorf("keys that begin with %s are left in Redis for an hour: %w", config.Prefix, err)
			}
		}
		return nil
	}
	return s, nil
}

// cleanRedis removes the keys with this prefix that one server has.
func cleanRedis(ctx context.Context, client, node rueidis.Client, prefix string) error {
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
