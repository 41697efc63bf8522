// SPDX-License-Identifier: Apache-2.0

package respapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/respapi"
)

func TestThrottle(t *testing.T) {
	p, clock, _ := start(t, "", respapi.Config{})
	p.want("*[0,16,15,-1,2]", "CL.THROTTLE", "user123", "15", "30", "60")
	p.want("*[0,16,15,-1,2]", "cl.throttle", "user123", "15", "30", "60", "0")
	p.want("*[0,16,5,-1,22]", "RL.THROTTLE", "user123", "15", "30", "60", "10")
	p.want("*[1,16,5,2,22]", "CL.THROTTLE", "user123", "15", "30", "60", "6")
	clock.advance(time.Millisecond)
	p.want("*[1,16,5,2,22]", "CL.THROTTLE", "user123", "15", "30", "60", "6") // 1.999 s and 21.999 s
	clock.advance(2 * time.Second)
	p.want("*[0,16,0,-1,32]", "CL.THROTTLE", "user123", "15", "30", "60", "6")
	p.want("*[1,16,0,-1,32]", "CL.THROTTLE", "user123", "15", "30", "60", "17") // never
	p.want("*[1,16,0,-1,32]", "CL.THROTTLE", "user123", "15", "30", "60", "9223372036854775807")
	p.want("*[0,16,0,-1,32]", "CL.THROTTLE", "user123", "15", "30", "60", "0")
	p.want("*[0,1,0,-1,1]", "CL.THROTTLE", "another", "0", "1000", "1")
	p.want("*[1,1,0,1,1]", "CL.THROTTLE", "another", "0", "1000", "1")
}

// redis-cell keeps the time at which a bucket is full, so a higher rate makes it deny (its issue 54).
func TestThrottle_NewLimitOfAKey(t *testing.T) {
	p, _, _ := start(t, "", respapi.Config{})
	p.want("*[0,10,5,-1,300]", "CL.THROTTLE", "k", "9", "1", "60", "5")
	p.want("*[0,100,94,-1,1]", "CL.THROTTLE", "k", "99", "100", "1")
}

func TestThrottle_Errors(t *testing.T) {
	const usage = "-ERR Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]"
	p, _, _ := start(t, "", respapi.Config{})
	for _, tt := range []struct{ args, want string }{
		{"", usage},
		{"k 1 1", usage},
		{"k 1 1 1 1 1", usage},
		{"k a 1 1", "-ERR Couldn't parse as integer: a"},
		{"k 1 1 1.5", "-ERR Couldn't parse as integer: 1.5"},
		{"k 1 1 1 99999999999999999999", "-ERR Couldn't parse as integer: 99999999999999999999"},
		{"k 1 0 1", "-ERR count is 0: Zero rates are not supported; it must be between 1 and 9007199254740"},
		{"k 1 1 0", "-ERR period is 0: Zero rates are not supported; it must be between 1 and 9007199254"},
		{"k -1 1 1", "-ERR max_burst must be between 0 and 9007199254738"},
		{"k 9223372036854775807 1 1", "-ERR max_burst must be between 0 and 9007199254738"},
		{"k 1 -1 1", "-ERR count must be between 1 and 9007199254740"},
		{"k 1 1 9223372036854775807", "-ERR period must be between 1 and 9007199254"},
		{"k 1 1 1 -1", "-ERR quantity must not be negative"},
		{"k 4398046509 999999937 999999937", "*[0,4398046510,4398046509,-1,1]"},
	} {
		p.want(tt.want, append([]string{"CL.THROTTLE"}, strings.Fields(tt.args)...)...)
	}
	p.want("-ERR the key must not be empty", "CL.THROTTLE", "", "1", "1", "1")
	if got := p.do("CL.THROTTLE", "k", "4398046509", "999999937", "1000003"); !strings.HasPrefix(got, "-ERR bucket: invalid limit: ") {
		t.Errorf("a limit beyond the arithmetic: got %s", got)
	}
}

// Clients choose keys. None may reach a bucket of the policy, or a key that the engine reserves.
func TestThrottle_Keys(t *testing.T) {
	rules := `{"rules": [{"name": "cl throttle", "limit_keys": ["user"], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 1}}]}`
	p, _, _ := start(t, rules, respapi.Config{})
	p.want("*[0,1,0,-1,1,cl throttle,,0,*[]]", "METE.TAKE", "user", "a")
	long := strings.Repeat("k", 5000)
	for _, key := range []string{"user=a", "a|#1", "|#", "a|#", "\x00\r\n\xff", long, long + "1", "cl throttle:user=a", strings.Repeat("k", 1076), strings.Repeat("k", 1077)} {
		p.want("*[0,2,1,-1,1]", "CL.THROTTLE", key, "1", "1", "1")
		p.want("*[0,2,0,-1,2]", "CL.THROTTLE", key, "1", "1", "1")
		p.want("*[1,2,0,1,2]", "CL.THROTTLE", key, "1", "1", "1")
	}
	p.want("*[1,1,0,1,1,cl throttle,token_bucket_exceeded,0,*[]]", "METE.TAKE", "user", "a")
	p.want("*[0,1,0,-1,1,cl throttle,,0,*[]]", "METE.TAKE", "user", "b")
}
