// SPDX-License-Identifier: Apache-2.0

package inredis

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/subject/remote"
)

// newRueidis returns a client for every subject that uses rueidis, with the
// settings that rueidis comes with: it sends the commands of concurrent callers
// together, over up to four connections. But it does not ask a server that is
// gone again and again: that would be a run without end instead of an error.
func newRueidis(addr string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableRetry: true})
}

// newGet reads keys that are not there: nothing that asks Redis at every take
// can be faster, but by asking for several callers at once.
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
