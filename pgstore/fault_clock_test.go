// SPDX-License-Identifier: Apache-2.0

package pgstore_test

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
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/store"
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
	if url := os.Getenv(variable); url != "" {
		now := time.Now()
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Until(now.Add(-time.Hour)))
			underSteps(t, url)
			if ahead := time.Duration(time.Now().UnixNano() - now.UnixNano()); ahead < time.Hour || ahead > 2*time.Hour {
				t.Errorf("the clock is %v ahead, want an hour: the test means nothing", ahead)
			}
		})
		return
	}
	faulttest.RunParallel(t)
	s := proctest.StartPostgres(t)
	p := at(t, s.URL(), "", pgstore.Config{Timeout: faulttest.Patience})
	hour(t, p.store, 4, 6, true)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run=^TestFault_ClockOfTheApp$", "-test.timeout="+faulttest.Patience.String())
	cmd.Env = append(os.Environ(), variable+"="+s.URL())
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("under another clock: %v\n%s", err, output)
	}
	hour(t, p.store, 2, 1, false)
	hour(t, p.store, 1, 0, true)
}

// underSteps takes before and after the clock advances by two hours.
func underSteps(t *testing.T, url string) {
	options, config, err := pgstore.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgstore.Dial(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	config.SweepEvery = -1 // it would tick all the time
	config.Timeout = faulttest.Patience
	s, err := pgstore.New(pool, config)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	hour(t, s, 3, 3, true)
	time.Sleep(2 * time.Hour) // of the synctest bubble
	hour(t, s, 4, 3, false)
	hour(t, s, 2, 1, true)
}
