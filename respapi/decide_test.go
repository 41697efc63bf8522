// SPDX-License-Identifier: Apache-2.0

package respapi_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/respapi"
)

const perUser = `{"rules": [{"name": "users", "limit_keys": ["user"], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 2}}]}`

func TestDecide(t *testing.T) {
	var changes []string
	p, _, _ := start(t, perUser, respapi.Config{Anonymous: respapi.RoleOperate, OnChange: func(_ context.Context, c respapi.Change) {
		changes = append(changes, fmt.Sprintf("%s %s %v", c.Command, c.Role, c.Err))
	}})
	for _, tt := range []struct{ command, want string }{
		{"METE.TAKE user alice", "*[0,2,1,-1,1,users,,0,*[]]"},
		{"METE.PEEK user alice", "*[0,2,1,-1,1,users,,0,*[]]"},
		{"METE.TAKE COST 0.5 user alice", "*[0,2,0,-1,2,users,,0,*[]]"},
		{"METE.TAKE user alice", "*[1,2,0,1,2,users,token_bucket_exceeded,0,*[]]"},
		{"METE.TAKE MAXWAIT 1000 user alice", "*[0,2,0,-1,3,users,,500,*[]]"},
		{"METE.TAKE COST 3 user bob", "*[1,2,2,-1,0,users,token_bucket_exceeded,0,*[]]"},
		{"METE.TAKE ID r1 COST 2 user bob", "*[0,2,0,-1,2,users,,0,*[]]"},
		{"METE.TAKE ID r1 COST 2 user bob", "*[0,2,0,-1,2,users,,0,*[]]"},
		{"METE.REFUND COST 1 user bob", "+OK"},
		{"METE.PEEK user bob", "*[0,2,1,-1,1,users,,0,*[]]"},
		{"METE.RESET user bob", "+OK"},
		{"METE.PEEK user bob", "*[0,2,2,-1,0,users,,0,*[]]"},
		{"METE.TAKE", "*[0,-1,-1,-1,0,,,0,*[]]"},
		{"METE.TAKE usr x header:X-Y z", "*[0,-1,-1,-1,0,,,0,*[usr,header:x-y]]"},
		{"METE.TAKE id 5", "*[0,-1,-1,-1,0,,,0,*[id]]"},
		{"METE.TAKE user", `-ERR attribute "user" has no value; write pairs of a name and a value`},
		{"METE.TAKE user a user b", `-ERR duplicate attribute "user"; send it once`},
		{"METE.TAKE COST 0 user a", "-ERR the cost is 0, which spends nothing; use METE.PEEK, or leave COST out to use the policy's cost"},
		{"METE.TAKE COST", "-ERR COST has no value"},
		{"METE.TAKE MAXWAIT -1 user a", "-ERR MAXWAIT is not a number of milliseconds; write a whole number such as 500"},
		{"METE.TAKE MAXWAIT 3600001 user a", "-ERR MAXWAIT is more than 1h, the longest wait that this server accepts; send a shorter one"},
		{"METE.TAKE ip:address 1.2.3", `-ERR "1.2.3" is not an address; write one such as 192.0.2.1 or 2001:db8::1, without a port, or leave it out`},
		{"METE.REFUND ID", "-ERR ID has no value"},
	} {
		p.want(tt.want, strings.Fields(tt.command)...)
	}
	for command, want := range map[string]string{
		"METE.TAKE COST -1 user a":     "-ERR ",
		"METE.TAKE COST 1.2345 user a": "-ERR ",
		"METE.TAKE User a":             "-ERR ",
		"METE.TAKE COST 9007199254741": "-ERR ",
	} {
		if got := p.do(strings.Fields(command)...); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s", command, got)
		}
	}
	if got := p.do("METE.TAKE", "ID", strings.Repeat("x", 129)); !strings.HasPrefix(got, "-ERR the id is too long") {
		t.Error(got)
	}
	if got := p.do(append([]string{"METE.TAKE"}, strings.Fields(strings.Repeat("a b ", 129))...)...); got != "-ERR 129 attributes: must be at most 128" {
		t.Error(got)
	}
	if got := strings.Join(changes, "; "); got != "refund operate <nil>; reset operate <nil>" {
		t.Errorf("changes: %s", got)
	}
}

// The table of decisions of all protocols.
func TestDecide_EveryDecision(t *testing.T) {
	const (
		one     = `{"rules": [{"name": "r", "limit_keys": ["user"], %s "algorithm_config": {"rate": "1/1d", "burst": 1}}]%s}`
		allowed = "*[0,1,0,-1,86400,r,,0,*[]]"
		full    = "*[1,1,0,86400,86400,r,token_bucket_exceeded,0,*[]]"
		free    = "*[0,-1,-1,-1,0,,,0,*[]]"
	)
	for _, tt := range []struct {
		name, setting, extra string
		down                 bool
		cost                 string
		want                 []string // of the same command again and again
	}{
		{"allowed, then denied", "", "", false, "1", []string{allowed, full, full}},
		{"never", "", "", false, "2", []string{"*[1,1,1,-1,0,r,token_bucket_exceeded,0,*[]]"}},
		{"shadow", `"mode": "shadow",`, "", false, "1", []string{free, free, free}},
		{"open", `"on_store_error": "open",`, "", true, "1", []string{free, free}},
		{"closed", `"on_store_error": "closed",`, "", true, "1", []string{"*[1,-1,-1,1,1,r,store_error,0,*[]]"}},
		{"local", `"on_store_error": "local",`, "", true, "1", []string{allowed, full}},
		{"break glass", "", `, "break_glass": {"reason": "r", "expires_at": "2100-01-01T00:00:00Z"}`, false, "1", []string{free, free, free}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var store mete.Store = newModel()
			if tt.down {
				store = &brokenStore{store}
			}
			lim := newLimiter(t, store, fmt.Sprintf(one, tt.setting, tt.extra), mete.Config{Local: newMemory(t)})
			_, addr := serve(t, lim, respapi.Config{})
			p := dial(t, addr)
			for _, want := range tt.want {
				p.want(want, "METE.TAKE", "COST", tt.cost, "user", "a")
			}
		})
	}
}
