// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/guard"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/storetest"
)

// TestBreaker_RecoveryOfAStoreThatHangs detects a hanging store by the charges of local spending, which have no
// short deadline.
func TestBreaker_RecoveryOfAStoreThatHangs(t *testing.T) {
	const deadline = 20 * time.Millisecond // of the rule
	synctest.Test(t, func(t *testing.T) {
		p := admit(t, guard.Config{Failures: 1, OpenFor: time.Second})
		m, err := policy.Load([]byte(`{"rules": [{"name": "all", "limit_keys": [], "on_store_error": "local", "deadline": "20ms", "algorithm_config": {"rps": 1, "burst": 10}}]}`), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		l, err := mete.New(p.guard, m, mete.Config{Local: storetest.NewModel(storetest.NewClock().Now)})
		if err != nil {
			t.Fatal(err)
		}
		p.inner.fail = func() error {
			time.Sleep(deadline) // as long as Mode.Within
			return &mete.StoreError{Op: "take", Store: "far", Err: context.DeadlineExceeded}
		}
		for range 10 { // all except the first are charges
			began := time.Now()
			d, err := l.Take(t.Context(), mete.Request{})
			if took := time.Since(began); err != nil || !d.Allowed || took > deadline {
				t.Fatalf("%+v, error %v, after %v; want one that is decided locally within the deadline", d, err, took)
			}
		}
		p.is("nobody answered for 50 ms", guard.StateOpen, 4)
	})
}
