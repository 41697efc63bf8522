// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"

	"github.com/redis/rueidis"
)

// Reset implements [mete.Store].
func (s *Store) Reset(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	commands := make(rueidis.Commands, 0, len(keys))
	for _, k := range keys {
		commands = append(commands, s.client.B().Del().Key(s.config.Prefix+bucketPrefix+k).Build())
	}
	for _, r := range s.client.DoMulti(ctx, commands...) {
		if err := r.Error(); err != nil {
			return named(storeError(err), "reset")
		}
	}
	return nil
}
