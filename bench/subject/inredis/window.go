// SPDX-License-Identifier: Apache-2.0

package inredis

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/subject/remote"
)

// window is the window of limiters that count in windows, which start with the first call of a key. None ends
// within a run.
const window = 24 * time.Hour

//go:embed window.lua
var windowSource string

var windowScript = rueidis.NewLuaScript(windowSource)

// newWindow stands in for rueidislimiter, a separate module of rueidis. It takes the same steps: one script
// per take through rueidis, with the time of the caller, and counts denied takes, too.
func newWindow(addr string, q subject.Quota) (remote.Limiter, error) {
	client, err := newRueidis(addr)
	if err != nil {
		return remote.Limiter{}, err
	}
	take := func(key string) (bool, error) {
		now := time.Now()
		reply, err := windowScript.Exec(context.Background(), client, []string{"window:{" + key + "}"}, []string{
			"1", strconv.FormatInt(now.Add(window).UnixMilli(), 10), strconv.FormatInt(now.UnixMilli(), 10),
		}).AsIntSlice()
		if err != nil {
			return false, err
		}
		if len(reply) != 2 {
			return false, fmt.Errorf("window.lua answered %d", reply)
		}
		return reply[0] <= int64(q.Capacity), nil
	}
	return remote.Limiter{Caller: remote.FromSingle(take), Close: client.Close}, nil
}
