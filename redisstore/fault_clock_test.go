// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
	"github.com/redis/rueidis"
)

// hourly has ten tokens and refills ten per hour. A clock that is wrong by an hour would fill the bucket or stop
// its refill.
var hourly = faulttest.Limit(10, bucket.Rate{Tokens: 10 * bucket.Token, Per: time.Hour})

// hour takes this many tokens and checks the rest.
func hour(t *testing.T, s mete.Store, tokens, left bucket.Tokens, allowed bool) {
	t.Helper()
	c := []store.Charge{{Key: "k", Limit: hourly, Cost: tokens * bucket.Token}}
	snaps, got, err := s.Take(context.Background(), nil, c, mete.Mode{})
	if err != nil {
		t.Fatal(err)
	}
	if there := snaps[0].Remaining().Whole(); got != allowed || there != int64(left) {
		t.Errorf("at %v, take of %d: allowed %v, %d left; want %v, %d", time.Now(), tokens, got, there, allowed, left)
	}
}

// TestFault_ClockOfTheApp runs itself in another process with a wrong clock, an hour behind and then an hour
// ahead, while a store is open. storetest covers steps of the server's clock with virtual time.
func TestFault_ClockOfTheApp(t *testing.T) {
	const variable = "METE_TEST_CLOCK"
	if addr := os.Getenv(variable); addr != "" {
		now := time.Now()
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Until(now.Add(-time.Hour)))
			underSteps(t, addr)
			if ahead := time.Duration(time.Now().UnixNano() - now.UnixNano()); ahead < time.Hour || ahead > 2*time.Hour {
				t.Errorf("the clock is %v ahead, want an hour: the test means nothing", ahead)
			}
		})
		return
	}
	faulttest.RunParallel(t)
	r := proctest.StartRedis(t)
	s, _ := dialURL(t, "redis://"+r.Addr, redisstore.Config{Timeout: faulttest.Patience})
	hour(t, s, 4, 6, true)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run=^TestFault_ClockOfTheApp$", "-test.timeout="+faulttest.Patience.String())
	cmd.Env = append(os.Environ(), variable+"="+r.Addr)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("under another clock: %v\n%s", err, output)
	}
	hour(t, s, 2, 1, false)
	hour(t, s, 1, 0, true)
}

// underSteps takes before and after the clock advances by two hours.
func underSteps(t *testing.T, addr string) {
	options, config, err := redisstore.ParseURL("redis://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	config.Prefix = "" // like the other process's clock
	config.Timeout = faulttest.Patience
	options.Dialer.KeepAlive = -1 // it would tick all the time
	client, err := rueidis.NewClient(options)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	s, err := redisstore.New(client, config)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	hour(t, s, 3, 3, true)
	time.Sleep(2 * time.Hour) // of the synctest bubble
	hour(t, s, 4, 3, false)
	hour(t, s, 2, 1, true)
}
