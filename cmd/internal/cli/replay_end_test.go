// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/cli"
	"github.com/metehq/mete/internal/proctest"
)

// A place is a store elsewhere, for replays.
type place struct {
	url     string
	buckets func() (string, error) // how many it has
	kill    func()
}

func places(t *testing.T) []place {
	redis, postgres := proctest.StartRedis(t), proctest.StartPostgres(t)
	return []place{
		{"redis://" + redis.Addr, func() (string, error) { return redis.Do("DBSIZE") }, redis.Kill},
		{postgres.URL(), func() (string, error) { return postgres.Psql("SELECT count(*) FROM mete.bucket") }, postgres.Kill},
	}
}

// A replaying is a replay that is going on.
type replaying struct {
	trace io.WriteCloser
	stop  context.CancelFunc
	errs  strings.Builder
	code  chan int
}

// startReplay has a store replay one request of a trace that goes on.
func startReplay(t *testing.T, in place) *replaying {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	input, trace := io.Pipe()
	r := &replaying{trace: trace, stop: stop, code: make(chan int, 1)}
	go func() {
		r.code <- cli.Main(ctx, []string{"replay", "--policy", "../../../examples/quickstart.yaml", "--store", in.url, "-"},
			cli.Streams{In: input, Out: io.Discard, Err: &r.errs})
		input.Close()
	}()
	r.line(0)
	deadline := time.Now().Add(time.Minute)
	for n := ""; n != "1"; n, _ = in.buckets() {
		if time.Now().After(deadline) {
			t.Fatalf("no bucket comes to %s", in.url)
		}
	}
	return r
}

// line adds a request to the trace.
func (r *replaying) line(at int) { fmt.Fprintf(r.trace, `{"at":%d,"ip":"192.0.2.1"}`+"\n", at) }

// A replay leaves nothing in the store, however it ends.
func TestReplay_LeavesNothing(t *testing.T) {
	for _, in := range places(t) {
		for _, tt := range []struct {
			name string
			end  func(*replaying)
			want int
		}{
			{"interrupted", func(r *replaying) { r.stop(); r.line(1) }, 2},
			{"at a wrong line", func(r *replaying) { io.WriteString(r.trace, "{\n") }, 2},
			{"in order", func(r *replaying) { r.trace.Close() }, 0},
		} {
			r := startReplay(t, in)
			tt.end(r)
			code := <-r.code
			if n, err := in.buckets(); err != nil || n != "0" || code != tt.want {
				t.Errorf("%s, %s: code %d, want %d, and %q buckets are left, %v:\n%s", in.url, tt.name, code, tt.want, n, err, &r.errs)
			}
		}
	}
}

// If the store fails, replay reports where it ended and what it leaves in the store. The failure comes
// with the second request, or with the first if it is unanswered.
func TestReplay_StoreGoesAway(t *testing.T) {
	for _, in := range places(t) {
		r := startReplay(t, in)
		in.kill()
		r.line(1)
		code := <-r.code
		if text := r.errs.String(); code != 3 || !strings.Contains(text, "after line ") || !strings.Contains(text, "remain in ") {
			t.Errorf("%s: code %d, want 3, where it ended and what is left:\n%s", in.url, code, text)
		}
	}
}
