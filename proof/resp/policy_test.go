// SPDX-License-Identifier: Apache-2.0

package resp_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/redis/rueidis"

	"github.com/metehq/mete/respapi"
)

// decision is a reply of METE.TAKE by the test's rules.
func decision(limited, remaining, retry, reset int64) []any {
	reason := ""
	if limited == 1 {
		reason = "token_bucket_exceeded"
	}
	return []any{limited, int64(3), remaining, retry, reset, "per-user", reason, int64(0), []any{}}
}

func TestClients_Policy(t *testing.T) {
	forEachClient(t, func(t *testing.T, dial func(testing.TB, connection) (client, error)) {
		var changes atomic.Int64
		s := serve(t, respapi.Config{
			Authenticate: authenticate,
			OnChange:     func(context.Context, respapi.Change) { changes.Add(1) },
		})
		c := mustDial(t, dial, s.connection())
		wantReply(t, c, decision(0, 2, -1, 60), "METE.TAKE", "header:x-user", "kim")
		wantReply(t, c, decision(0, 0, -1, 180), "METE.TAKE", "COST", "2", "header:x-user", "kim")
		wantReply(t, c, decision(1, 0, 60, 180), "METE.TAKE", "header:x-user", "kim")
		wantReply(t, c, decision(1, 0, 60, 180), "METE.PEEK", "header:x-user", "kim")
		wantReply(t, c, "OK", "METE.REFUND", "header:x-user", "kim")
		wantReply(t, c, decision(0, 1, -1, 120), "METE.PEEK", "header:x-user", "kim")
		wantReply(t, c, "OK", "METE.RESET", "header:x-user", "kim")
		wantReply(t, c, decision(0, 3, -1, 0), "METE.PEEK", "header:x-user", "kim")
		wantError(t, c, "has a sign", "METE.TAKE", "COST", "-1", "header:x-user", "kim")
		wantError(t, c, "attribute", "METE.TAKE", "header:x-user")
		if n := changes.Load(); n != 2 {
			t.Errorf("%d changes reported, want 2", n)
		}

		reader := s.connection()
		reader.password = readToken
		c = mustDial(t, dial, reader)
		wantReply(t, c, decision(0, 3, -1, 0), "METE.PEEK", "header:x-user", "kim")
		for _, command := range []string{"METE.TAKE", "METE.REFUND", "METE.RESET"} {
			if got, err := do(c, command, "header:x-user", "kim"); err == nil {
				t.Errorf("%s with the role read = %v, want an error", command, got)
			}
		}
	})
}

// The client cache of rueidis needs CLIENT TRACKING, which the server does not have. The error names the remedy.
func TestRueidis_ClientCache(t *testing.T) {
	t.Parallel()
	s := serve(t, respapi.Config{})
	options := rueidisOptions(t, s.connection())
	options.DisableCache = false
	c, err := rueidis.NewClient(options)
	if err == nil {
		c.Close()
	}
	if !errors.Is(err, rueidis.ErrNoCache) {
		t.Errorf("rueidis with its client cache: %v, want %v", err, rueidis.ErrNoCache)
	}
}
