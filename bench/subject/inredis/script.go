// SPDX-License-Identifier: Apache-2.0

package inredis

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/subject/remote"
)

//go:embed script.lua
var scriptSource string

var bucketScript = rueidis.NewLuaScript(scriptSource)

// newScript is the usual code without a library: a token bucket in a Lua script, which runs once per take for
// all its keys. It uses mete's client without batches: the difference to mete is the gain of batching.
func newScript(addr string, q subject.Quota) (remote.Limiter, error) {
	client, err := newRueidis(addr)
	if err != nil {
		return remote.Limiter{}, err
	}
	args := []string{strconv.Itoa(q.Capacity), strconv.FormatInt(q.Every.Microseconds(), 10)}
	take := func(keys []string) (bool, error) {
		reply, err := bucketScript.Exec(context.Background(), client, keys, args).AsIntSlice()
		if err != nil {
			return false, err
		}
		if len(reply) != 2 {
			return false, fmt.Errorf("script.lua answered %d", reply)
		}
		return reply[0] == 1, nil
	}
	return remote.Limiter{Caller: func() remote.Take { return take }, Close: client.Close}, nil
}
