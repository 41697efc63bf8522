// SPDX-License-Identifier: Apache-2.0

package inredis

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/subject/remote"
)

// newRueidis returns the client of all subjects that use rueidis. The settings are the defaults, with batches
// of concurrent commands on up to four connections, but without retries: a lost server must end the run.
func newRueidis(addr string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableRetry: true})
}

// newGet reads missing keys. Only batches of several callers can be faster than it.
func newGet(addr string, _ subject.Quota) (remote.Limiter, error) {
	client, err := newRueidis(addr)
	if err != nil {
		return remote.Limiter{}, err
	}
	take := func(keys []string) (bool, error) {
		var reply rueidis.RedisResult
		if len(keys) == 1 {
			reply = client.Do(context.Background(), client.B().Get().Key(keys[0]).Build())
		} else {
			reply = client.Do(context.Background(), client.B().Mget().Key(keys...).Build())
		}
		if err := reply.Error(); err != nil && !rueidis.IsRedisNil(err) {
			return false, err
		}
		return true, nil
	}
	return remote.Limiter{Caller: func() remote.Take { return take }, Close: client.Close}, nil
}
